// Subscriptions that are behind: a position in the order of events in place of a delivery for each of them. And how many
// deliveries are stored and pending.
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { type OrderedEvent, orderedColumns } from './deliveries.store.ts'

/** Pending deliveries of a subscription, counted no further than `most`. */
export async function countWaiting(reader: Reader, subscription: number, most: number): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM deliveries WHERE subscription_id = ${subscription} AND state = 0 LIMIT ${most}) AS oldest`)
  return row!.count
}

/** Pending deliveries of an organization, counted no further than `most`. */
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

export async function setRoom(tx: Tx, subscription: number, room: number): Promise<void> {
  await tx.run(sql`UPDATE delivery_queues SET room = ${room} WHERE subscription_id = ${subscription}`)
}

export type Follower = { behind: number; uid: string; group: string; types: string; vendor: string }

/** The node's queue, if it is behind. Call `lockRouting` first where it has to stay as it is. */
export function findFollower(reader: Reader, subscription: number, node: string): Promise<Follower | undefined> {
  return reader.get<Follower>(sql`
    SELECT q.behind, s.uid, s.parent_uid AS "group", s.types, s.vendor
      FROM delivery_queues q JOIN subscriptions s ON s.id = q.subscription_id
     WHERE q.subscription_id = ${subscription} AND q.owner = ${node} AND q.behind > 0`)
}

/** What anybody may see of the events of a group and below it, of the positions from `after` to `upTo`, in order. */
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

/** The position of the last event that has one. */
export async function lastPosition(reader: Reader): Promise<number> {
  const row = await reader.get<{ position: number }>(sql`SELECT position FROM events_router WHERE id = 1`)
  return row!.position
}

/** Events of a group and below it behind a position, by type, counted no further than so many positions. */
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

/** From `position` on: the last one before the next event that there is, or `upTo` where there is none. */
export async function lastEmpty(reader: Reader, position: number, upTo: number): Promise<number> {
  const row = await reader.get<{ position: number }>(sql`
    SELECT position FROM events_outbox WHERE position > 0 AND position > ${position} AND position <= ${upTo}
     ORDER BY position LIMIT 1`)
  return row ? row.position - 1 : upTo
}

/** `behind` is 0 for no longer. Somebody counts again before it gets more. */
export async function setBehind(tx: Tx, subscription: number, behind: number): Promise<void> {
  await tx.run(sql`UPDATE delivery_queues SET behind = ${behind}, room = 0 WHERE subscription_id = ${subscription}`)
}

/** Leaves out what was before `position`. */
export async function passOver(tx: Tx, subscription: number, position: number): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET behind = ${position}
     WHERE subscription_id = ${subscription} AND behind > 0 AND behind < ${position}`)
}
