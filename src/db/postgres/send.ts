import type pg from 'pg'
import { busy } from '#lib/errors.ts'

type Queries = { query(config: pg.QueryConfig): Promise<pg.QueryResult> }

/** Sends one statement; what goes wrong with the connection has a code, as what the server says has. */
export async function send(client: Queries, config: pg.QueryConfig): Promise<pg.QueryResult> {
  return await client.query(config).catch(rethrow)
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined
}

// pg reports a lost connection in words only, and as many that none is left; callers tell errors apart by code.
export function rethrow(error: unknown): never {
  if (error instanceof Error && codeOf(error) === undefined) {
    // Of the pool, whose connections are all in use; one that cannot be made says so in other words.
    if (/^timeout exceeded when trying to connect/.test(error.message)) {
      throw busy('all connections to the database are in use; try again', error)
    }
    if (/connection timeout$/.test(error.message)) {
      Object.assign(error, { code: 'ETIMEDOUT' })
    } else if (/^Connection terminated|is not queryable$/.test(error.message)) {
      Object.assign(error, { code: 'ECONNRESET' })
    }
  }
  throw error
}
