import type pg from 'pg'
import { busy } from '#lib/errors.ts'

type Queries = { query(config: pg.QueryConfig): Promise<pg.QueryResult> }

/**
 * Sends one statement; what goes wrong with the connection has a code, as what the server says has. Of a pool, `anyInUse` says
 * whether one of its connections is with somebody.
 */
export async function send(
  client: Queries,
  config: pg.QueryConfig,
  anyInUse: () => boolean = () => false,
): Promise<pg.QueryResult> {
  return await client.query(config).catch((error: unknown) => rethrow(error, anyInUse()))
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
