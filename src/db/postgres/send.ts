import type pg from 'pg'

type Queries = { query(config: pg.QueryConfig): Promise<pg.QueryResult> }

/** Sends one statement; what goes wrong with the connection has a code, as what the server says has. */
export async function send(client: Queries, config: pg.QueryConfig): Promise<pg.QueryResult> {
  return await client.query(config).catch(rethrow)
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined
}

// pg reports a lost connection in words only; callers tell errors apart by code.
export function rethrow(error: unknown): never {
  if (error instanceof Error && codeOf(error) === undefined) {
    if (/^timeout exceeded when trying to connect|connection timeout$/.test(error.message)) {
      Object.assign(error, { code: 'ETIMEDOUT' })
    } else if (/^Connection terminated|is not queryable$/.test(error.message)) {
      Object.assign(error, { code: 'ECONNRESET' })
    }
  }
  throw error
}
