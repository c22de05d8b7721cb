import { type Reader, sql } from '#db/sql.ts'

export type QueueDepth = { count: number; ageSeconds: number }
export type DepthState = 'ready' | 'blocked' | 'paused' | 'given_up'

type Row = { state: DepthState; count: number; oldest: string | null; behind?: string | null }

/** When the oldest event was made that has no place in the order yet; `undefined` when all have. */
export async function oldestUnrouted(reader: Reader): Promise<string | undefined> {
  const row = await reader.get<{ createTime: string }>(sql`
    SELECT create_time AS "createTime" FROM events_outbox WHERE position = 0 ORDER BY id LIMIT 1`)
  return row?.createTime
}

/** How many stored deliveries wait, and how old the oldest event that waits is, by why it waits; all from indexes. `now` is in milliseconds. */
export async function readDepth(reader: Reader, now: number): Promise<Record<DepthState, QueueDepth>> {
  const nowText = new Date(now).toISOString()
  const rows = await reader.all<Row>(sql`
    SELECT CASE WHEN q.paused = 1 THEN 'paused' WHEN q.blocked_until > ${nowText} THEN 'blocked' ELSE 'ready' END AS "state",
           (SELECT count(*) FROM deliveries d WHERE d.subscription_id = q.subscription_id AND d.state = 0) AS "count",
           (SELECT d.create_time FROM deliveries d
             WHERE d.subscription_id = q.subscription_id AND d.state = 0 ORDER BY d.id LIMIT 1) AS "oldest",
           (SELECT o.create_time FROM events_outbox o
             WHERE q.behind > 0 AND o.position > q.behind AND o.position > 0 ORDER BY o.position LIMIT 1) AS "behind"
      FROM delivery_queues q WHERE q.generation <> q.served AND q.deleted = 0`)
  const given = await reader.all<Row>(sql`
    SELECT 'given_up' AS "state", (SELECT count(*) FROM deliveries WHERE state = 2) AS "count",
           (SELECT create_time FROM deliveries WHERE state = 2 ORDER BY id LIMIT 1) AS "oldest"`)
  const depths: Record<DepthState, QueueDepth> = {
    ready: { count: 0, ageSeconds: 0 },
    blocked: { count: 0, ageSeconds: 0 },
    paused: { count: 0, ageSeconds: 0 },
    given_up: { count: 0, ageSeconds: 0 },
  }
  for (const { state, count, ...times } of [...rows, ...given]) {
    const oldest = times.oldest ?? times.behind ?? null
    const depth = depths[state]
    depth.count += count
    if (oldest !== null) depth.ageSeconds = Math.max(depth.ageSeconds, (now - Date.parse(oldest)) / 1000)
  }
  return depths
}
