// Support for a pooler in front of PostgreSQL, such as PgBouncer in transaction mode. A pooler gives each transaction another
// connection.
import pg from 'pg'
import { defaultTimes } from './connections.ts'
import { isPooledUrl, poolConfig } from './postgres-config.ts'
import { codeOf, rethrow, send } from './send.ts'

/**
 * Number of connections that use the same prepared statement, one after the other. An unsuitable pooler fails after a few of
 * them.
 */
const rounds = 4
/** Error codes for a prepared statement that already exists, and for one that is missing. */
const nameErrors: readonly unknown[] = ['42P05', '26000']

/** Throws if the pooler does not share prepared statements among its connections. */
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

/** Throws if the two URLs lead to different schemas or different database servers. */
async function requireSameDatabase(pooled: string, direct: string): Promise<void> {
  const text = `SELECT current_database() AS database, current_schema() AS schema, pg_postmaster_start_time()::text AS started`
  const [ours, theirs] = await Promise.all([queryOnce(pooled, { text }), queryOnce(direct, { text })])
  if (JSON.stringify(ours.rows) === JSON.stringify(theirs.rows)) return
  throw new Error(
    'PINFOLD_DATABASE_DIRECT and PINFOLD_DATABASE have different databases or schemas; use the same in both',
  )
}

/** URL for migrations, which need a session for their locks and settings. Throws if the URL leads to a pooler. */
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

/** Runs the query on a connection of its own. */
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
