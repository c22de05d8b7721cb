// Sends statements to PostgreSQL. Each statement has a time limit, and every connection failure has an error code.
import { performance } from 'node:perf_hooks'
import pg from 'pg'
import { busy } from '#lib/errors.ts'

/** A connection, with methods that the published types lack. */
type Connection = {
  connection?: { stream: { destroy(): void } }
  query(query: pg.Query, done: (error: Error | undefined, result: pg.QueryResult) => void): unknown
}

/**
 * Time limit for the response to a statement. `usual` is above the server's `statement_timeout`, so it ends a statement only if
 * the server does not respond at all. `quick` is for heartbeats and health checks.
 */
export type TimeLimit = { readonly kind: 'quick' | 'usual' | 'none'; readonly ms: number }

/** Sends statements within time limits. */
export type Sends = {
  readonly limits: Record<TimeLimit['kind'], TimeLimit>
  send(client: pg.ClientBase, query: pg.QueryConfig, limit: TimeLimit): Promise<pg.QueryResult>
}

/** A statement that was sent and has no response yet. */
export type Sent = { readonly at: number; readonly limit: TimeLimit }

/**
 * Error of a statement whose time limit has passed. After a COMMIT, the caller cannot know whether the transaction was committed.
 */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
  readonly code = 'ETIMEDOUT'
  constructor({ ms }: TimeLimit, cause: unknown) {
    super(`the database did not answer within ${ms / 1000} s`, { cause })
  }
}

const sent = new WeakMap<pg.ClientBase, Sent>()

/** Statement without a response yet on this connection. Undefined if there is none. */
export const sentOn = (client: pg.ClientBase): Sent | undefined => sent.get(client)

/** Closes a connection without notifying the server, which may not respond. A statement on the connection fails at once. */
export function drop(client: pg.ClientBase): void {
  const { connection }: Connection = client
  connection?.stream.destroy()
}

/**
 * Sends one statement. If its time limit passes, closes the connection. Otherwise a late response could be taken for the response
 * to the next statement.
 */
export async function send(
  client: pg.ClientBase,
  { text, values, name }: pg.QueryConfig,
  limit: TimeLimit,
): Promise<pg.QueryResult> {
  // The text is passed as an argument. A config object would be copied by pg property by property, which is slower than the rest
  // of its work.
  const query = Object.assign(new pg.Query(text, values), name && { name })
  const now: Sent = { at: performance.now(), limit }
  sent.set(client, now)
  let timer: NodeJS.Timeout | undefined
  let isLate = false
  // If this process was blocked, the response may already be in the socket. So the socket is read once more before the connection
  // is closed.
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
    // The original stack of a database error only shows that data was received, so the stack is replaced.
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

// pg reports a lost connection and an exhausted pool only by their messages. These errors get a code, so that callers can tell
// them apart.
export function rethrow(error: unknown, anyInUse: boolean): never {
  if (error instanceof Error && codeOf(error) === undefined) {
    // Error of the pool for a caller that got no connection in time. If no connection is in use, none could be opened at all.
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
