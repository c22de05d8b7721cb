// Queries for the events of a queue that have no delivery row yet. Progress of a queue consists of its position, and of the
// subjects with untried events before that position. Also counts stored and pending deliveries.
import { locking } from '#db/row-locks.ts'
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { type OrderedEvent, orderedColumns } from './deliveries.store.ts'

/** Number of pending deliveries of a subscription, at most `most`. */
export async function countWaiting(reader: Reader, subscription: number, most: number): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM deliveries WHERE subscription_id = ${subscription} AND state = 0 LIMIT ${most}) AS oldest`)
  return row!.count
}

/** Number of pending deliveries of an organization, at most `most`. */
export async function countPending(
  reader: Reader,
  organization: string,
  most = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM subscriptions s JOIN deliveries d ON d.subscription_id = s.id AND d.state = 0
       WHERE s.uid > ${`${organization}/`} AND s.uid < ${`${organization}0`} LIMIT ${most}) AS oldest`)
  return row!.count
}

export type Follower = { uid: string; group: string; types: string; vendor: string }

/**
 * Subscription of a queue that the server `node` owns. The group and types of the subscription select the events of the queue.
 */
export function findFollower(reader: Reader, subscription: number, node: string): Promise<Follower | undefined> {
  return reader.get<Follower>(sql`
    SELECT s.uid, s.parent_uid AS "group", s.types, s.vendor
      FROM delivery_queues q JOIN subscriptions s ON s.id = q.subscription_id
     WHERE q.subscription_id = ${subscription} AND q.owner = ${node}`)
}

/**
 * Events of a group and its descendants with positions after `after` and up to `upTo`, in order. Internal events are left out.
 */
export function eventsBetween(
  reader: Reader,
  { after, upTo, group }: { after: number; upTo: number; group: string },
  limit: number,
): Promise<OrderedEvent[]> {
  return reader.all(sql`
    SELECT ${orderedColumns} FROM events_outbox
     WHERE position > ${after} AND position <= ${upTo} AND position > 0 AND audience = 'CUSTOMER'
       AND (event_group = ${group} OR (event_group > ${`${group}/`} AND event_group < ${`${group}0`}))
     ORDER BY position LIMIT ${limit}`)
}

/** Events of one subject, with the same conditions as in `eventsBetween`. */
export function eventsOfSubject(
  reader: Reader,
  { subject, after, upTo, group }: { subject: string; after: number; upTo: number; group: string },
  limit: number,
): Promise<OrderedEvent[]> {
  return reader.all(sql`
    SELECT ${orderedColumns} FROM events_outbox
     WHERE subject = ${subject} AND position > ${after} AND position <= ${upTo} AND position > 0 AND audience = 'CUSTOMER'
       AND (event_group = ${group} OR (event_group > ${`${group}/`} AND event_group < ${`${group}0`}))
     ORDER BY position LIMIT ${limit}`)
}

/** Position of the last routed event. Later events have higher positions. */
export async function lastPosition(reader: Reader): Promise<number> {
  const row = await reader.get<{ position: number }>(sql`SELECT position FROM events_router WHERE id = 1`)
  return row!.position
}

/** Counts events of a group and its descendants by type. Reads the next `positions` positions after a position. */
export function countBehind(
  reader: Reader,
  { behind, group, uid }: { behind: number; group: string; uid: string },
  positions: number,
): Promise<{ type: string; count: number }[]> {
  return reader.all(sql`
    SELECT type, count(*) AS count FROM events_outbox
     WHERE position > ${behind} AND position <= ${behind + positions} AND position > 0 AND audience = 'CUSTOMER'
       AND (event_group = ${group} OR (event_group > ${`${group}/`} AND event_group < ${`${group}0`}))
       AND subject <> ${uid}
     GROUP BY type`)
}

/** Last position before the next existing event after `position`. Returns `upTo` if there is no event up to that position. */
export async function lastEmpty(reader: Reader, position: number, upTo: number): Promise<number> {
  const row = await reader.get<{ position: number }>(sql`
    SELECT position FROM events_outbox WHERE position > 0 AND position > ${position} AND position <= ${upTo}
     ORDER BY position LIMIT 1`)
  return row ? row.position - 1 : upTo
}

/** For each subject, the position up to which all of its events were tried. */
export type Behind = ReadonlyMap<string, number>

/** Progress of a queue to save. Call `lockRouting` first. */
export type Checkpoint = {
  /** All events up to this position were tried. For subjects with a separate position, only the events up to that position. */
  position: number
  /** Positions of subjects that are new or have changed. */
  set: Behind
  /** Subjects that have no untried events before `position` any more. */
  removed: readonly string[]
  /** True if all events that were read have been tried. */
  isDone: boolean
  /** True if the checkpoint differs from the progress in the database. */
  isNews: boolean
}

const perStatement = 50

/** Progress of a queue. `generation` is the queue's generation at the time of reading. */
export type Progress = { behind: number; position: number; generation: number; subjectQueues: Map<string, number> }

/**
 * Reads the progress of a queue. Untried events begin after `position`. Subjects in `subjectQueues` also have untried events before it. A
 * queue without a position has no untried events: each event was tried or has a stored delivery.
 */
export async function findProgress(reader: Reader, subscription: number): Promise<Progress> {
  const row = await reader.get<{ behind: number; position: number; generation: number }>(sql`
    SELECT q.behind, q.generation, r.position FROM events_router r JOIN delivery_queues q ON q.subscription_id = ${subscription}
     WHERE r.id = 1`)
  const subjectQueues = await reader.all<{ subject: string; position: number }>(sql`
    SELECT subject, position FROM delivery_lanes WHERE subscription_id = ${subscription}`)
  const behind = row?.behind ?? 0
  return {
    behind,
    position: behind || (row?.position ?? 0),
    generation: row?.generation ?? 0,
    subjectQueues: new Map(subjectQueues.map(({ subject, position }) => [subject, position])),
  }
}

/** Saves the progress of a queue. Returns false and writes nothing if the server does not own the queue any more. */
export async function saveProgress(
  tx: Tx,
  subscription: number,
  node: string,
  { position, set, removed }: Checkpoint,
): Promise<boolean> {
  const saved = await tx.run(sql`
    UPDATE delivery_queues SET behind = ${position} WHERE subscription_id = ${subscription} AND owner = ${node}`)
  if (saved === 0) return false
  for (const some of chunks(removed, perStatement)) {
    await tx.run(sql`DELETE FROM delivery_lanes WHERE subscription_id = ${subscription} AND subject IN (${list(some)})`)
  }
  for (const some of chunks([...set], perStatement)) {
    const rows = some.map(([subject, at]) => sql`(${subscription}, ${subject}, ${at})`)
    await tx.run(sql`
      INSERT INTO delivery_lanes (subscription_id, subject, position) VALUES ${join(rows, ', ')}
      ON CONFLICT (subscription_id, subject) DO UPDATE SET position = excluded.position`)
  }
  return true
}

/** Schedules queues again that have untried events of subjects from an earlier version. Called when a server starts. */
export async function wakeSubjectQueues(tx: Tx): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET generation = generation + 1, due_time = ''
     WHERE subscription_id IN (
       SELECT subscription_id FROM delivery_queues
        WHERE generation = served AND deleted = 0 AND subscription_id IN (SELECT subscription_id FROM delivery_lanes)
        ORDER BY subscription_id ${locking(tx, 'alone')})`)
}

/** Number of untried events of such subjects up to `upTo`, by type, at most `most`. */
export function countInSubjectQueues(
  reader: Reader,
  { id, uid, group, upTo }: { id: number; uid: string; group: string; upTo: number },
  most: number,
): Promise<{ type: string; count: number }[]> {
  return reader.all(sql`
    SELECT type, count(*) AS count FROM (
      SELECT o.type FROM delivery_lanes l
        JOIN events_outbox o ON o.subject = l.subject AND o.position > l.position AND o.position <= ${upTo}
                            AND o.position > 0 AND o.audience = 'CUSTOMER'
       WHERE l.subscription_id = ${id} AND l.subject <> ${uid}
         AND (o.event_group = ${group} OR (o.event_group > ${`${group}/`} AND o.event_group < ${`${group}0`}))
       LIMIT ${most}) AS counted
     GROUP BY type`)
}
