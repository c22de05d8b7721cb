// Tests through a real connection pooler, such as PgBouncer: PINFOLD_TEST_POOLER is its URL. It must lead to the PostgreSQL of
// PINFOLD_TEST_DATABASE, with all databases under their own names. Each test has its own database instead of its own schema.
import pg from 'pg'

export const pooler = process.env.PINFOLD_TEST_DATABASE ? (process.env.PINFOLD_TEST_POOLER ?? '') : ''

/** URL of the database `name` through the pooler. */
export function pooledUrlOf(name: string): string {
  const url = new URL(pooler)
  url.pathname = `/${name}`
  url.searchParams.set('pooled', 'true')
  return url.href
}

/** Sets what clients cannot set through the pooler (see docs/operations/scale.md). */
export async function configureForPooler(client: pg.Client, name: string, schema: string): Promise<void> {
  await client.query(`ALTER DATABASE ${name} SET search_path = ${schema}`)
  await client.query(`ALTER DATABASE ${name} SET statement_timeout = '30s'`)
  await client.query(`ALTER DATABASE ${name} SET idle_in_transaction_session_timeout = '10s'`)
}

/** Creates a database with a schema of the same name, for tests through a pooler. Returns a URL without the pooler. */
export async function pooledDatabase(name: string): Promise<string> {
  const url = new URL(process.env.PINFOLD_TEST_DATABASE!)
  const run = async (connectionString: string, work: (client: pg.Client) => Promise<unknown>) => {
    const client = new pg.Client({ connectionString })
    await client.connect()
    await work(client).finally(() => client.end())
  }
  await run(url.href, (client) => client.query(`CREATE DATABASE ${name}`))
  await run(url.href, (client) => configureForPooler(client, name, name))
  url.pathname = `/${name}`
  await run(url.href, (client) => client.query(`CREATE SCHEMA ${name}`))
  return url.href
}
