// Statements on their way to PostgreSQL. Each has a time limit, and every failure of a connection has a code.
import { performance } from 'node:perf_hooks'
import pg from 'pg'
import { busy } from '#lib/errors.ts'

/** A connection; the published types lack some of its methods. */
type Connection = {
  connection?: { stream: { destroy(): void } }
  query(query: pg.Query, done: (error: Error | undefined, result: pg.QueryResult) => void): unknown
}

/**
 * Time limit for the answer to a statement. The usual limit is above the server's own `statement_timeout`, so that it only ends
 * statements that the server does not answer at all. `quick` is for heartbeats.
 */
export type TimeLimit = { readonly kind: 'quick' | 'usual' | 'none'; readonly ms: number }

/** Sends statements within time limits. */
export type Sends = {
  readonly limits: Record<TimeLimit['kind'], TimeLimit>
  send(client: pg.ClientBase, query: pg.QueryConfig, limit: TimeLimit): Promise<pg.QueryResult>
}

/** A statement that waits for its answer. */
export type Sent = { readonly at: number; readonly limit: TimeLimit }

/** The time limit of a statement has passed. After a COMMIT, it is unknown if it has happened. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
  readonly code = 'ETIMEDOUT'
  constructor({ ms }: TimeLimit, cause: unknown) {
    super(`the database did not answer within ${ms / 1000} s`, { cause })
  }
}

const sent = new WeakMap<pg.ClientBase, Sent>()

/** The statement that the connection waits for, if there is one. */
export const sentOn = (client: pg.ClientBase): Sent | undefined => sent.get(client)

/** Ends a connection without a message to the server, which may not answer. A statement on it fails at once. */
export function drop(client: pg.ClientBase): void {
  const { connection }: Connection = client
  connection?.stream.destroy()
}

/**
 * Sends one statement. If its time is over, drops the connection, so that a late answer is not taken for that of the next
 * statement.
 */
export async function send(
  client: pg.ClientBase,
  { text, values, name }: pg.QueryConfig,
  limit: TimeLimit,
): Promise<pg.QueryResult> {
  // Not passed as an object, since pg copies objects with the descriptor of each property, which takes longer than all its other
  // work.
  const query = Object.assign(new pg.Query(text, values), name && { name })
  const now: Sent = { at: performance.now(), limit }
  sent.set(client, now)
  let timer: NodeJS.Timeout | undefined
  let isLate = false
  // If this process was blocked, the answer may already be in the socket. Reads it before the connection is dropped.
  const onTime = () =>
    setImmediate(() => {
      if (sent.get(client) !== now) return
      isLate = true
      drop(client)
    })
  if (limit.kind !== 'none') timer = setTimeout(onTime, limit.ms)
  try {
    return await new Promise((resolve, reject) => {
      const queries: Connection = client
      queries.query(query, (error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    if (isLate) throw new NoAnswer(limit, error)
    // For an error in an answer, the original stack only shows that data came from the network.
    if (error instanceof Error) Error.captureStackTrace(error)
    return rethrow(error, false)
  } finally {
    clearTimeout(timer)
    if (sent.get(client) === now) sent.delete(client)
  }
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined
}

// pg reports a lost connection, and a pool without free connections, only by message; callers distinguish errors by code.
export function rethrow(error: unknown, anyInUse: boolean): never {
  if (error instanceof Error && codeOf(error) === undefined) {
    // Error of the pool for a caller that waited in vain, also if all connections are still being opened and none succeeds.
    const waited = /^timeout exceeded when trying to connect/.test(error.message)
    if (waited && anyInUse) throw busy('all connections to the database are in use; try again', error)
    if (waited || /connection timeout$|^timeout expired$/.test(error.message)) {
      Object.assign(error, { code: 'ETIMEDOUT' })
    } else if (/^Connection terminated|is not queryable$/.test(error.message)) {
      Object.assign(error, { code: 'ECONNRESET' })
    }
  }
  throw error
}
