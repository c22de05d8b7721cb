// PostgreSQL engine: a pool, prepared statements, and serializable transactions that are retried on conflict.
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { isBusy } from '#lib/errors.ts'
import { createCommits } from '../changes.ts'
import { createGuard } from '../guard.ts'
import { compile, type Db, type Reader, type Sql, type Tx, type TxOptions } from '../sql.ts'
import { isReadOnly } from '../unavailable.ts'
import { type Connections, defaultTimes, openConnections, type Times } from './connections.ts'
import { createFullDisk } from './full-disk.ts'
import { createLockLimits, LockFull } from './lock-limits.ts'
import { pingWhileFull } from './ping.ts'
import { noSession } from './pooler.ts'
import { defaultPoolSize, isPooledUrl, poolConfig } from './postgres-config.ts'
import { requireWritable, withReason } from './read-only.ts'
import type { TimeLimit } from './send.ts'
import { createTransactions } from './transactions.ts'

const maxNamedValues = 200
const maxNames = 500
/**
 * Maximum number of transactions that wait for one lock, such as that of a repository. The number is high, since a refused client
 * would only wait and retry.
 */
const mostWaiting = 100
const crowdMs = 30_000
/** Connections that transactions with a process-wide lock leave free for other work. */
const keptFree = 3

export type PostgresOptions = { poolSize?: number; waitMs?: number; times?: Partial<Times> }

/**
 * Opens PostgreSQL, and connects at the first use. The URL may name a schema, as in `?schema=name`. `migrate` creates a missing
 * schema.
 */
export function openPostgres(url: string, options: PostgresOptions = {}): Db {
  const isPooled = isPooledUrl(url)
  const times = { ...defaultTimes, ...options.times }
  const connections = openConnections(poolConfig(url, options), isPooled, times)
  const { limits, send } = connections
  const guard = createGuard('postgres')
  const commits = createCommits()
  const toQuery = createQueries()
  const fullDisk = createFullDisk(connections, times.fullMs)
  const counts = { transactions: 0, commits: 0, retries: 0, refused: 0, again: new Map<string, number>() }
  const transact = createTransactions({ send, toQuery, guard, commits, counts })
  const mostInside = Math.max(1, (options.poolSize ?? defaultPoolSize) - keptFree)
  const nextTurn = createLockLimits({ mostInside, mostWaiting, waitMs: crowdMs })

  async function read<T>(method: string, query: Sql, limit: TimeLimit): Promise<T[]> {
    guard.outside(method)
    return (await fullDisk.watch(counted(readOnce(connections, toQuery(query), limit)))).rows
  }

  async function counted<T>(asked: Promise<T>): Promise<T> {
    return await asked.catch((error: unknown) => {
      if (isBusy(error)) counts.refused++
      throw error
    })
  }

  /** Runs a transaction. While it waits for other transactions of this process, it has no connection. */
  async function inTurn<T>(work: (tx: Tx) => Promise<T>, options: TxOptions, limit: TimeLimit): Promise<T> {
    const turn = nextTurn()
    try {
      for (;;) {
        try {
          if (options.meets) turn.enter(options.meets)
          return await withClient(connections, limit, (client) => transact(client, turn, work, options, limit))
        } catch (error) {
          if (!(error instanceof LockFull)) throw error
          await turn.wait(error)
        }
      }
    } finally {
      turn.leave()
    }
  }

  async function inTx<T>(work: (tx: Tx) => Promise<T>, options: TxOptions, limit: TimeLimit): Promise<T> {
    guard.outside('tx')
    counts.transactions++
    return await fullDisk.watch(counted(inTurn(work, options, limit)))
  }

  async function isReady(client: pg.PoolClient): Promise<void> {
    await requireWritable(connections, client)
    await fullDisk.require(client)
  }

  return {
    engine: 'postgres',
    shared: true,
    all: (query) => read('all', query, limits.usual),
    get: async <T>(query: Sql) => (await read<T>('get', query, limits.usual))[0],
    tx: (work, options = {}) => inTx(work, options, limits[options.timeLimit ?? 'usual']),
    quick: {
      get: async <T>(query: Sql) => (await read<T>('get', query, limits.quick))[0],
      tx: (work, options = {}) => inTx(work, options, limits.quick),
    },
    alone: async (work) => {
      if (isPooled) throw noSession()
      return withSlowConnection(connections, work)
    },
    onCommit: commits.listen,
    plan: (query) => withClient(connections, limits.usual, (client) => explain(connections, client, query)),
    ping: () =>
      fullDisk.explain(counted(pingWhileFull(connections, () => withClient(connections, limits.quick, isReady)))),
    stats: () => ({ ...counts }),
    close: connections.close,
  }
}

async function withClient<T>(
  connections: Connections,
  limit: TimeLimit,
  use: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connections.connect(limit.kind === 'none' ? 'kept' : undefined)
  let keep = false
  try {
    const value = await use(client)
    keep = true
    return value
  } catch (cause) {
    const error = await withReason(connections, client, cause)
    // State `I` (idle) means that the rollback has reached the server, so the connection can be used again. A read-only server
    // may be a former primary, so its connection is closed.
    keep = client.getTransactionStatus() === 'I' && !isReadOnly(error)
    throw error
  } finally {
    client.release(!keep)
  }
}

/** Sends one statement outside of a transaction. If it fails, the connection is closed. */
async function readOnce(connections: Connections, query: pg.QueryConfig, limit: TimeLimit): Promise<pg.QueryResult> {
  const client = await connections.connect()
  let keep = false
  try {
    const result = await connections.send(client, query, limit)
    keep = true
    return result
  } finally {
    client.release(!keep)
  }
}

async function withSlowConnection<T>(connections: Connections, work: (one: Reader) => Promise<T>): Promise<T> {
  const client = await connections.connect('kept')
  const send = (query: pg.QueryConfig) => connections.send(client, query, connections.limits.none)
  try {
    await send({ text: 'SET statement_timeout = 0' })
    const all = async <R>(query: Sql): Promise<R[]> =>
      (await send({ text: compile(query, '$'), values: query.values as unknown[] })).rows
    return await work({ all, get: async <R>(query: Sql) => (await all<R>(query))[0] })
  } finally {
    // Closes the connection, since its session settings must not affect other work.
    client.release(true)
  }
}

async function explain({ send: sendTo, limits }: Connections, client: pg.PoolClient, query: Sql): Promise<string> {
  const send = (config: pg.QueryConfig) => sendTo(client, config, limits.usual)
  await send({ text: 'BEGIN' })
  // Tests have small tables, for which PostgreSQL plans scans and sorts. With these off, the plan shows whether an index exists
  // for the query.
  const off = ['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit'].map((name) => `SET LOCAL ${name} = off`)
  await send({ text: off.join('; ') })
  const text = `EXPLAIN (FORMAT TEXT) ${compile(query, '$')}`
  const explained = await send({ text, values: query.values as unknown[] }).finally(() => send({ text: 'ROLLBACK' }))
  return explained.rows.map((row) => row['QUERY PLAN']).join('\n')
}

/**
 * Name of a prepared statement, made from its text. Processes behind a pooler may share connections, so all of them use the same
 * name for a text.
 */
function statementName(text: string): string {
  return `pinfold_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

function createQueries(): (query: Sql) => pg.QueryConfig {
  const nameOf = createNames()
  return (query) => {
    const text = compile(query, '$')
    // A statement with a long list has no name. Each length of the list is another text, so there would be too many prepared
    // statements.
    const name = query.values.length > maxNamedValues ? undefined : nameOf(text)
    return { text, values: query.values as unknown[], ...(name && { name }) }
  }
}

// Names a text when it is used for the second time. A named statement stays prepared on every connection, so a text that is used
// once gets no name.
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
