import pg from 'pg'
import { busy } from '#lib/errors.ts'

/** A connection or a pool of them, of which the types know fewer calls than they take. */
type Queries = { query(query: pg.Query, done: (error: Error | undefined, result: pg.QueryResult) => void): unknown }

/**
 * Sends one statement; what goes wrong with the connection has a code, as what the server says has. Of a pool, `anyInUse` says
 * whether one of its connections is with somebody.
 */
export async function send(
  client: pg.PoolClient | pg.Pool,
  { text, values, name }: pg.QueryConfig,
  anyInUse: () => boolean = () => false,
): Promise<pg.QueryResult> {
  // What is given as an object pg copies with the descriptor of each property, which takes longer than all else that it does.
  const query = Object.assign(new pg.Query(text, values), name && { name })
  try {
    return await new Promise((resolve, reject) => {
      const queries: Queries = client
      queries.query(query, (error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    // Of an answer it would say only that something came from the network.
    if (error instanceof Error) Error.captureStackTrace(error)
    return rethrow(error, anyInUse())
  }
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined
}

// pg reports a lost connection in words only, and as many that none is left; callers tell errors apart by code.
export function rethrow(error: unknown, anyInUse: boolean): never {
  if (error instanceof Error && codeOf(error) === undefined) {
    // Of the pool to whoever waited in vain, also where all of its connections are still being made and none comes about.
    const waited = /^timeout exceeded when trying to connect/.test(error.message)
    if (waited && anyInUse) throw busy('all connections to the database are in use; try again', error)
    if (waited || /connection timeout$/.test(error.message)) {
      Object.assign(error, { code: 'ETIMEDOUT' })
    } else if (/^Connection terminated|is not queryable$/.test(error.message)) {
      Object.assign(error, { code: 'ECONNRESET' })
    }
  }
  throw error
}
