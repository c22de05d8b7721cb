// A pooler between us and PostgreSQL that gives each transaction another connection, such as PgBouncer in transaction mode.
import pg from 'pg'
import { defaultTimes } from './connections.ts'
import { isPooledUrl, poolConfig } from './postgres-config.ts'
import { codeOf, rethrow, send } from './send.ts'

/** Number of connections, one after the other, that use one name. A pooler without support for it soon fails. */
const rounds = 4
/** A name that is there already, and one that is not. */
const nameErrors: readonly unknown[] = ['42P05', '26000']

/** Throws unless statements that one connection has named can be used by others. */
export async function requireNamedStatements(url: string, quickMs = defaultTimes.quickMs): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    try {
      await queryOnce(url, { name: 'pinfold_check', text: 'SELECT $1::int AS round', values: [round] }, quickMs)
    } catch (error) {
      if (!nameErrors.includes(codeOf(error))) throw error
      const needs = 'PgBouncer 1.21 or later with max_prepared_statements above 0'
      throw new Error(`the pooler of PINFOLD_DATABASE does not support prepared statements; use ${needs}`, {
        cause: error,
      })
    }
  }
}

/** Throws unless both URLs lead to the same schema of the same running database. */
async function requireSameDatabase(pooled: string, direct: string): Promise<void> {
  const text = `SELECT current_database() AS database, current_schema() AS schema, pg_postmaster_start_time()::text AS started`
  const [ours, theirs] = await Promise.all([queryOnce(pooled, { text }), queryOnce(direct, { text })])
  if (JSON.stringify(ours.rows) === JSON.stringify(theirs.rows)) return
  throw new Error(
    'PINFOLD_DATABASE_DIRECT and PINFOLD_DATABASE have different databases or schemas; use the same in both',
  )
}

/** URL for work that needs a session: migrations, their locks and settings. Throws if it would go through a pooler. */
export async function directUrl(database: string, direct: string): Promise<string> {
  if (!isPooledUrl(database)) return database
  if (direct === '') throw noSession()
  await requireSameDatabase(database, direct)
  return direct
}

export function noSession(): Error {
  return new Error(
    'migrations need a database session, which the pooler of PINFOLD_DATABASE (pooled=true) does not provide; set PINFOLD_DATABASE_DIRECT to a URL of the same database without the pooler',
  )
}

/** Asks over a connection of its own. */
async function queryOnce(url: string, query: pg.QueryConfig, ms = defaultTimes.quickMs): Promise<pg.QueryResult> {
  const client = new pg.Client(poolConfig(url))
  client.on('error', () => {})
  try {
    await client.connect()
    return await send(client, query, { kind: 'quick', ms })
  } catch (error) {
    return rethrow(error, false)
  } finally {
    void client.end().catch(() => {})
  }
}
