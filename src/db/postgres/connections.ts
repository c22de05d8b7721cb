// Pool of connections to PostgreSQL, with a time limit on every statement.
import pg from 'pg'
import { createLossWatch, type WatchTimes } from './loss-watch.ts'
import { requirePrimary } from './read-only.ts'
import { drop, NoAnswer, rethrow, type Sends, send } from './send.ts'

export type Times = WatchTimes & {
  /** Longest wait for the response to a statement, in milliseconds. Must be above `statement_timeout`. */
  answerMs: number
  /** Longest wait for the response to a health check or a heartbeat, in milliseconds. */
  quickMs: number
  /** Time after a write on a full disk for which health checks fail in any case, in milliseconds. */
  fullMs: number
}

const watchTimes: WatchTimes = { silentMs: 3000, watchMs: 1000, sparedMs: 10_000 }
export const defaultTimes: Times = { ...watchTimes, answerMs: 35_000, quickMs: 5000, fullMs: 10_000 }

/** Longest wait for a new connection, which tests whether the server still responds, in milliseconds. */
const freshMs = 2000

export type Connections = Sends & {
  /** `kept` is for migrations: this connection is not closed when lost connections are closed. */
  connect(kept?: 'kept'): Promise<pg.PoolClient>
  /** True if callers wait for a free connection. */
  isWaitedFor(): boolean
  /** True if a new connection, which is not in the pool, gets an answer within `ms` milliseconds. */
  answersFresh(ms: number): Promise<boolean>
  close(): Promise<void>
}

export function openConnections(config: pg.PoolConfig, isPooled: boolean, times: Times): Connections {
  const limits = {
    quick: { kind: 'quick', ms: times.quickMs },
    usual: { kind: 'usual', ms: times.answerMs },
    none: { kind: 'none', ms: 0 },
  } as const
  const pool = new pg.Pool({
    ...config,
    // Refuses a standby, since its data may be old. Skipped behind a pooler, which may use another server for each transaction.
    ...(!isPooled && { onConnect: (client) => requirePrimary({ send, limits }, client) }),
  })
  const live = new Set<pg.PoolClient>()
  const inUse = new Set<pg.PoolClient>()
  const kept = new Set<pg.PoolClient>()
  // The code that uses a broken connection gets the error. Without a listener, the error would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => {
    client.on('error', () => {})
    live.add(client)
    client.once('end', () => void live.delete(client))
  })
  pool.on('acquire', (client) => void inUse.add(client))
  pool.on('release', (_error, client) => {
    inUse.delete(client)
    kept.delete(client)
  })
  const watch = createLossWatch(times, {
    live: () => [...live].filter((client) => !kept.has(client)),
    isPooled,
    ask: (pids) => askFresh(config, pids, freshMs),
  })

  return {
    limits,
    async connect(how) {
      const client = await pool.connect().catch((error: unknown) => rethrow(error, inUse.size > 0))
      if (how === 'kept') kept.add(client)
      return client
    },
    isWaitedFor: () => pool.waitingCount > 0,
    answersFresh: async (ms) => (await askFresh(config, [], ms)) !== undefined,
    async send(client, query, limit) {
      try {
        return await send(client, query, limit)
      } catch (error) {
        if (error instanceof NoAnswer) watch.noAnswer()
        throw error
      }
    },
    async close() {
      watch.close()
      if (!pool.ending) await pool.end()
    },
  }
}

/**
 * Opens a new connection, and returns which of these backends are running a statement. Undefined if the server does not respond.
 */
async function askFresh(
  config: pg.PoolConfig,
  pids: readonly number[],
  ms: number,
): Promise<ReadonlySet<number> | undefined> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: ms })
  client.on('error', () => {})
  try {
    await client.connect()
    // If `track_activities` is off, the state is 'disabled', and every existing backend counts as running.
    const text = `SELECT pid FROM pg_stat_activity WHERE pid = ANY($1) AND state NOT LIKE 'idle%' AND usename = current_user`
    const query = pids.length > 0 ? { text, values: [pids] } : { text: 'SELECT 1 WHERE false' }
    const { rows } = await send(client, query, { kind: 'quick', ms })
    void client.end().catch(() => {})
    return new Set(rows.map(({ pid }) => pid as number))
  } catch {
    drop(client)
    return undefined
  }
}
