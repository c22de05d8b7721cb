// The PostgreSQL engine: a pool, named statements, and serializable transactions that are tried again on conflict.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { changesOf, createCommits } from '../changes.ts'
import { createGuard, type Outcome } from '../guard.ts'
import { type Change, compile, type Db, type Sql, sql, type Tx, type TxOptions } from '../sql.ts'
import { poolConfig } from './postgres-config.ts'

const conflictRetries = 12
const constraintRetries = 3
const patience = 6
const maxNamedValues = 200
const maxNames = 500

type Queries = { query(config: pg.QueryConfig): Promise<pg.QueryResult> }
type Send = (config: pg.QueryConfig) => Promise<pg.QueryResult>
type Work<T> = (tx: Tx) => Promise<T>
type Attempted<T> = { outcome: Outcome<T>; changes: ReadonlySet<Change> }

/** Connects when first used. The URL may name a schema, as in `?schema=name`, which `migrate` creates if it is missing. */
export function openPostgres(url: string, options: { poolSize?: number } = {}): Db {
  const pool = new pg.Pool(poolConfig(url, options.poolSize ?? 10))
  // A connection that dies is reported to whoever uses it; without a listener it would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const guard = createGuard()
  const commits = createCommits()
  const nameOf = createNames()
  const turns = createTurns()
  const counts = { transactions: 0, commits: 0, retries: 0 }

  function toQuery(query: Sql): pg.QueryConfig {
    const text = compile(query, '$')
    // Statements with long lists come in too many lengths to keep them all prepared.
    const name = query.values.length > maxNamedValues ? undefined : nameOf(text)
    return { text, values: query.values as unknown[], ...(name && { name }) }
  }

  async function read<T>(method: string, query: Sql): Promise<T[]> {
    guard.outside(method)
    return (await send(pool, toQuery(query))).rows
  }

  async function attempt<T>(client: pg.PoolClient, work: Work<T>, begin: string): Promise<Attempted<T>> {
    const one = oneAtATime(client)
    const changes = new Set<Change>()
    const step = (query: Sql): Promise<pg.QueryResult> => {
      const config = toQuery(query)
      for (const change of changesOf(config.text)) changes.add(change)
      return one(config)
    }
    const steps = {
      all: async <R>(query: Sql): Promise<R[]> => (await step(query)).rows,
      run: async (query: Sql) => (await step(query)).rowCount ?? 0,
    }
    await one({ text: begin })
    let outcome = await guard.run(steps, shardOf(client), work)
    if (outcome.ok) {
      try {
        const { command } = await one({ text: 'COMMIT' })
        // PostgreSQL answers ROLLBACK, and no error, when a statement that nobody waited for has failed.
        if (command !== 'COMMIT') throw new Error('a statement of this transaction has failed')
      } catch (error) {
        outcome = { ok: false, error, stepError: error }
      }
    }
    // Without a connection this fails as well, but the first error tells more.
    if (!outcome.ok) await one({ text: 'ROLLBACK' }).catch(() => {})
    return { outcome, changes }
  }

  async function attempts<T>(client: pg.PoolClient, work: Work<T>, options: TxOptions): Promise<T> {
    const begin = beginOf(options)
    let constraints = 0
    let giveBack: (() => void) | undefined
    try {
      for (let retries = 0; ; retries++) {
        if (retries === patience) giveBack = await turns.take()
        else if (!giveBack) await turns.open()
        const { outcome, changes } = await attempt(client, work, begin)
        if (outcome.ok) {
          counts.commits++
          commits.report([changes])
          for (const callback of outcome.after) callback()
          return outcome.value
        }
        // The work may have wrapped the conflict in an error of its own; a broken constraint it may have meant.
        const conflict = isConflict(outcome.error) || isConflict(outcome.stepError)
        const again = conflict || (isConstraint(outcome.error) && constraints++ < constraintRetries)
        if (!again || retries === conflictRetries) throw outcome.error
        counts.retries++
        if (retries < patience) await sleep(Math.random() * 2 ** (retries + 1))
      }
    } finally {
      giveBack?.()
    }
  }

  async function withClient<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect().catch(rethrow)
    let keep = false
    try {
      const value = await use(client)
      keep = true
      return value
    } catch (error) {
      // Idle again means that the rollback has reached the server.
      keep = client.getTransactionStatus() === 'I'
      throw error
    } finally {
      client.release(!keep)
    }
  }

  return {
    engine: 'postgres',
    shared: true,
    all: (query) => read('all', query),
    get: async <T>(query: Sql) => (await read<T>('get', query))[0],

    async tx(work, options = {}) {
      guard.outside('tx')
      counts.transactions++
      return await withClient((client) => attempts(client, work, options))
    },

    onCommit: commits.listen,

    async plan(query) {
      const text = `EXPLAIN (FORMAT TEXT) ${compile(query, '$')}`
      return await withClient(async (client) => {
        await send(client, { text: 'BEGIN' })
        // On the small tables of a test every plan is a scan and a sort, unless an index is there to avoid them.
        const off = ['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit'].map(
          (name) => `SET LOCAL ${name} = off`,
        )
        await send(client, { text: off.join('; ') })
        const explained = await send(client, { text, values: query.values as unknown[] }).finally(() =>
          send(client, { text: 'ROLLBACK' }),
        )
        return explained.rows.map((row) => row['QUERY PLAN']).join('\n')
      })
    },

    ping: async () => void (await read('get', sql`SELECT 1 AS one`)),
    stats: () => ({ ...counts }),
    close: async () => void (pool.ending || (await pool.end())),
  }
}

async function send(client: Queries, config: pg.QueryConfig): Promise<pg.QueryResult> {
  return await client.query(config).catch(rethrow)
}

function beginOf({ isolation, durability }: TxOptions): string {
  const begin = `BEGIN ISOLATION LEVEL ${isolation === 'rowLocks' ? 'READ COMMITTED' : 'SERIALIZABLE'}`
  return durability === 'later' ? `${begin}; SET LOCAL synchronous_commit = off` : begin
}

// pg wants one statement at a time, while a work may start several at once.
function oneAtATime(client: pg.PoolClient): Send {
  let last: Promise<unknown> = Promise.resolve()
  return (config) => {
    const result = last.then(() => send(client, config))
    last = result.catch(() => {})
    return result
  }
}

// Fresh transactions would starve one that has to sleep between attempts; after a few it gets this process for itself.
function createTurns() {
  let last: Promise<void> = Promise.resolve()
  return {
    open: () => last,
    async take(): Promise<() => void> {
      const before = last
      const { promise, resolve } = Promise.withResolvers<void>()
      last = before.then(() => promise)
      await before
      return resolve
    },
  }
}

// A name keeps the statement prepared on every connection for good, so it is for texts that come back.
function createNames(): (text: string) => string | undefined {
  const seen = new Set<string>()
  const names = new Map<string, string>()
  return (text) => {
    const name = names.get(text)
    if (name !== undefined || names.size >= maxNames) return name
    if (seen.has(text)) {
      seen.delete(text)
      names.set(text, `pinfold_${names.size}`)
    } else {
      if (seen.size >= 2 * maxNames) seen.clear()
      seen.add(text)
    }
    return names.get(text)
  }
}

function shardOf(client: pg.PoolClient): number {
  return ((client as unknown as { processID?: number | null }).processID ?? 0) % 64
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined
}

function isConflict(error: unknown): boolean {
  const code = codeOf(error)
  return code === '40001' || code === '40P01'
}

// A concurrent writer won a race; the next attempt sees its rows, and the work's own checks name the problem.
function isConstraint(error: unknown): boolean {
  const code = codeOf(error)
  return code === '23505' || code === '23503'
}

// pg reports a lost connection in words only; callers tell errors apart by code.
function rethrow(error: unknown): never {
  if (error instanceof Error && codeOf(error) === undefined) {
    if (/^timeout exceeded when trying to connect|connection timeout$/.test(error.message)) {
      Object.assign(error, { code: 'ETIMEDOUT' })
    } else if (/^Connection terminated|is not queryable$/.test(error.message)) {
      Object.assign(error, { code: 'ECONNRESET' })
    }
  }
  throw error
}
