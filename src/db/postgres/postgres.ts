// The PostgreSQL engine: a pool, named statements, and serializable transactions that are tried again on conflict.
import { createHash } from 'node:crypto'
import pg from 'pg'
import { isBusy } from '#lib/errors.ts'
import { createCommits } from '../changes.ts'
import { createGuard } from '../guard.ts'
import { compile, type Db, type Reader, type Sql, sql, type Tx, type TxOptions } from '../sql.ts'
import { Crowded, createCrowds } from './crowds.ts'
import { defaultPoolSize, poolConfig } from './postgres-config.ts'
import { rethrow, send } from './send.ts'
import { createTransactions } from './transactions.ts'

const maxNamedValues = 200
const maxNames = 500
/** Of one place, such as a repository; a client that is told to come again would only wait elsewhere. */
const mostWaiting = 100
const crowdMs = 30_000
/** Connections that nobody has who may be waiting for others, whatever it is that they wait for. */
const keptFree = 3

/** Connects when first used. The URL may name a schema, as in `?schema=name`, which `migrate` creates if it is missing. */
export function openPostgres(url: string, options: { poolSize?: number; waitMs?: number } = {}): Db {
  const { pool, anyInUse, connect } = openPool(poolConfig(url, options))
  const guard = createGuard('postgres')
  const commits = createCommits()
  const nameOf = createNames()
  const counts = { transactions: 0, commits: 0, retries: 0, refused: 0, again: new Map<string, number>() }
  const transact = createTransactions({ toQuery, guard, commits, counts })
  const mostInside = Math.max(1, (options.poolSize ?? defaultPoolSize) - keptFree)
  const nextTurn = createCrowds({ mostInside, mostWaiting, waitMs: crowdMs })

  function toQuery(query: Sql): pg.QueryConfig {
    const text = compile(query, '$')
    // Statements with long lists come in too many lengths to keep them all prepared.
    const name = query.values.length > maxNamedValues ? undefined : nameOf(text)
    return { text, values: query.values as unknown[], ...(name && { name }) }
  }

  async function read<T>(method: string, query: Sql): Promise<T[]> {
    guard.outside(method)
    return (await counted(send(pool, toQuery(query), anyInUse))).rows
  }

  async function counted<T>(asked: Promise<T>): Promise<T> {
    return await asked.catch((error: unknown) => {
      if (isBusy(error)) counts.refused++
      throw error
    })
  }

  async function withClient<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await connect()
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

  /** Whoever has to wait for others of this process does so without a connection. */
  async function inTurn<T>(work: (tx: Tx) => Promise<T>, options: TxOptions): Promise<T> {
    const turn = nextTurn()
    try {
      for (;;) {
        try {
          if (options.meets) turn.enter(options.meets)
          return await withClient((client) => transact(client, turn, work, options))
        } catch (error) {
          if (!(error instanceof Crowded)) throw error
          await turn.wait(error)
        }
      }
    } finally {
      turn.leave()
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
      return await counted(inTurn(work, options))
    },

    alone: async (work) => alone(await connect(), work),

    onCommit: commits.listen,

    plan: (query) => withClient((client) => explain(client, query)),

    ping: async () => void (await read('get', sql`SELECT 1 AS one`)),
    stats: () => ({ ...counts }),
    close: async () => void (pool.ending || (await pool.end())),
  }
}

async function alone<T>(client: pg.PoolClient, work: (one: Reader) => Promise<T>): Promise<T> {
  try {
    await send(client, { text: 'SET statement_timeout = 0' })
    const all = async <R>(query: Sql): Promise<R[]> =>
      (await send(client, { text: compile(query, '$'), values: query.values as unknown[] })).rows
    return await work({ all, get: async <R>(query: Sql) => (await all<R>(query))[0] })
  } finally {
    // Nobody else is to have what was set.
    client.release(true)
  }
}

function openPool(config: pg.PoolConfig) {
  const pool = new pg.Pool(config)
  // A connection that dies is reported to whoever uses it; without a listener it would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  let inUse = 0
  pool.on('acquire', () => void inUse++)
  pool.on('release', () => void inUse--)
  const anyInUse = () => inUse > 0
  const connect = () => pool.connect().catch((error: unknown) => rethrow(error, anyInUse()))
  return { pool, anyInUse, connect }
}

async function explain(client: pg.PoolClient, query: Sql): Promise<string> {
  await send(client, { text: 'BEGIN' })
  // On the small tables of a test every plan is a scan and a sort, unless an index is there to avoid them.
  const off = ['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit'].map((name) => `SET LOCAL ${name} = off`)
  await send(client, { text: off.join('; ') })
  const text = `EXPLAIN (FORMAT TEXT) ${compile(query, '$')}`
  const explained = await send(client, { text, values: query.values as unknown[] }).finally(() =>
    send(client, { text: 'ROLLBACK' }),
  )
  return explained.rows.map((row) => row['QUERY PLAN']).join('\n')
}

/** The same in every process, since a pooler may hand a connection with its statements on to another one. */
function statementName(text: string): string {
  return `pinfold_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
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
      names.set(text, statementName(text))
    } else {
      if (seen.size >= 2 * maxNames) seen.clear()
      seen.add(text)
    }
    return names.get(text)
  }
}
