// Depth of the queues, for metrics.
import { type Reader, sql } from '#db/sql.ts'

export type QueueDepth = { count: number; ageSeconds: number }
export type DepthState = 'ready' | 'blocked' | 'paused' | 'given_up'

type Row = { state: DepthState; count: number; oldest: string | null; behind?: string | null }

/** Queues whose events are counted, and positions behind that of each: reading metrics stays cheap. */
const counted = { queues: 100, positions: 1000 }

/** When the oldest event was made that has no place in the order yet; `undefined` when all have. */
export async function oldestUnrouted(reader: Reader): Promise<string | undefined> {
  const row = await reader.get<{ createTime: string }>(sql`
    SELECT create_time AS "createTime" FROM events_outbox WHERE position = 0 ORDER BY id LIMIT 1`)
  return row?.createTime
}

/** Whether a subscription wants events of a type; `types` is JSON. */
export type Wanted = (subscription: { uid: string; types: string; vendor: string }, type: string) => boolean

const stateOf = (now: string) => sql`
  CASE WHEN q.paused = 1 THEN 'paused' WHEN q.blocked_until > ${now} THEN 'blocked' ELSE 'ready' END`

/**
 * How many deliveries wait, stored or not, and how old the oldest event that waits is, by why it waits; all from indexes.
 * `now` is in milliseconds.
 */
export async function readDepth(wants: Wanted, reader: Reader, now: number): Promise<Record<DepthState, QueueDepth>> {
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
  const events = await countEvents(wants, reader, nowText)
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

type Counted = { state: DepthState; uid: string; types: string; vendor: string; type: string; count: number }

/** Events behind the positions of queues, as far as they are counted. */
async function countEvents(wants: Wanted, reader: Reader, now: string): Promise<Row[]> {
  const rows = await reader.all<Counted>(sql`
    SELECT q."state", s.uid, s.types, s.vendor, o.type, count(*) AS count
      FROM (SELECT q.subscription_id, q.behind, ${stateOf(now)} AS "state" FROM delivery_queues q
             WHERE q.generation <> q.served AND q.deleted = 0 AND q.behind > 0
             ORDER BY q.subscription_id LIMIT ${counted.queues}) AS q
      JOIN subscriptions s ON s.id = q.subscription_id
      JOIN events_outbox o ON o.position > q.behind AND o.position <= q.behind + ${counted.positions} AND o.position > 0
       AND o.audience = 'CUSTOMER' AND o.subject <> s.uid
       AND (o.event_group = s.parent_uid
            OR (o.event_group > s.parent_uid || '/' AND o.event_group < s.parent_uid || '0'))
     GROUP BY q."state", s.uid, s.types, s.vendor, o.type`)
  return rows.filter((one) => wants(one, one.type)).map(({ state, count }) => ({ state, count, oldest: null }))
}
