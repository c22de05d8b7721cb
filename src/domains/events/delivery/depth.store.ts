// Number of pending deliveries in all queues, for metrics.
import { type Reader, sql } from '#db/sql.ts'
import { createYielder } from '#lib/scheduling/yielder.ts'
import { countBehind, lastPosition } from './backlog.store.ts'

export type QueueDepth = { count: number; ageSeconds: number }
export type DepthState = 'ready' | 'blocked' | 'paused' | 'given_up'

type Row = { state: DepthState; count: number; oldest: string | null; behind?: string | null }

/**
 * Limits on the counting of events, so that reading metrics is fast: on the number of queues, on positions for each queue, and on
 * all positions.
 */
const counted = { queues: 100, positions: 1000, inAll: 10_000 }

/** Time of the oldest event that was not routed yet. Undefined if all events are routed. */
export async function oldestUnrouted(reader: Reader): Promise<string | undefined> {
  const row = await reader.get<{ createTime: string }>(sql`
    SELECT create_time AS "createTime" FROM events_outbox WHERE position = 0 ORDER BY id LIMIT 1`)
  return row?.createTime
}

/** True if a subscription wants events of a type. `types` is JSON. */
export type Wanted = (subscription: { uid: string; types: string; vendor: string }, type: string) => boolean

const stateOf = (now: string) => sql`
  CASE WHEN q.paused = 1 THEN 'paused' WHEN q.blocked_until > ${now} THEN 'blocked' ELSE 'ready' END`

/**
 * Number of pending deliveries and age of the oldest pending event, by reason. Includes events without a row. All values come
 * from indexes. `now` is in milliseconds.
 */
export async function readDepth(
  wants: Wanted,
  reader: Reader,
  now: number,
  most = counted,
): Promise<Record<DepthState, QueueDepth>> {
  const nowText = new Date(now).toISOString()
  const rows = await reader.all<Row>(sql`
    SELECT ${stateOf(nowText)} AS "state",
           (SELECT count(*) FROM deliveries d WHERE d.subscription_id = q.subscription_id AND d.state = 0) AS "count",
           (SELECT d.create_time FROM deliveries d
             WHERE d.subscription_id = q.subscription_id AND d.state = 0 ORDER BY d.id LIMIT 1) AS "oldest",
           (SELECT o.create_time FROM events_outbox o
             WHERE q.behind > 0 AND o.position > q.behind AND o.position > 0 ORDER BY o.position LIMIT 1) AS "behind"
      FROM delivery_queues q WHERE q.generation <> q.served AND q.deleted = 0`)
  const given = await reader.all<Row>(sql`
    SELECT 'given_up' AS "state", (SELECT count(*) FROM deliveries WHERE state = 2) AS "count",
           (SELECT create_time FROM deliveries WHERE state = 2 ORDER BY id LIMIT 1) AS "oldest"`)
  const events = await countEvents(wants, reader, nowText, most)
  const depths: Record<DepthState, QueueDepth> = {
    ready: { count: 0, ageSeconds: 0 },
    blocked: { count: 0, ageSeconds: 0 },
    paused: { count: 0, ageSeconds: 0 },
    given_up: { count: 0, ageSeconds: 0 },
  }
  for (const { state, count, ...times } of [...rows, ...given, ...events]) {
    const oldest = times.oldest ?? times.behind ?? null
    const depth = depths[state]
    depth.count += count
    if (oldest !== null) depth.ageSeconds = Math.max(depth.ageSeconds, (now - Date.parse(oldest)) / 1000)
  }
  return depths
}

type Follower = { state: DepthState; uid: string; group: string; types: string; vendor: string; behind: number }

/**
 * Counts events after the positions of queues, within the limits. Paused queues come last. Each queue has a separate query, so
 * that other work can run between them.
 */
async function countEvents(wants: Wanted, reader: Reader, now: string, most: typeof counted): Promise<Row[]> {
  const last = await lastPosition(reader)
  const followers = await reader.all<Follower>(sql`
    SELECT ${stateOf(now)} AS "state", s.uid, s.parent_uid AS "group", s.types, s.vendor, q.behind
      FROM delivery_queues q JOIN subscriptions s ON s.id = q.subscription_id
     WHERE q.generation <> q.served AND q.deleted = 0 AND q.behind > 0
     ORDER BY q.paused, q.subscription_id LIMIT ${most.queues}`)
  const yielder = createYielder()
  const rows: Row[] = []
  let left = most.inAll
  for (const one of followers) {
    const positions = Math.min(most.positions, last - one.behind, left)
    if (positions <= 0) continue
    left -= positions
    if (yielder.isDue()) await yielder.next()
    for (const { type, count } of await countBehind(reader, one, positions)) {
      if (wants(one, type)) rows.push({ state: one.state, count, oldest: null })
    }
  }
  return rows
}
