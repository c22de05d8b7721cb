// Empty databases with all migrations. A template is made once for each state of the migrations and then copied, which is ten
// times as fast.
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '#db/migrate.ts'
import { migrations } from '#db/migrations/all.ts'
import { openDb } from '#db/open.ts'
import { configureForPooler, pooledUrlOf, pooler } from './pooler.ts'

const sources = join(import.meta.dirname, '../../src/db')
const cache = join(import.meta.dirname, '../../node_modules/.cache/pinfold-test')
/** Schema that contains the tables of a copy in PostgreSQL. */
const schema = 'pinfold'
/** Number of an advisory lock that has no other use. */
const turns = 7_040_113

let state: string | undefined

/** Hash of the migrations and the code that applies them. */
function stateOfMigrations(): string {
  if (state !== undefined) return state
  const hash = createHash('sha256')
  for (const file of globSync('**/*.ts', { cwd: sources }).sort()) {
    hash.update(file).update(readFileSync(join(sources, file)))
  }
  state = hash.digest('hex').slice(0, 16)
  return state
}

/** Creates an embedded database at `file`. */
export async function copyOfSqlite(file: string): Promise<void> {
  const made = join(cache, `${stateOfMigrations()}.db`)
  if (!existsSync(made)) {
    mkdirSync(cache, { recursive: true })
    const folder = mkdtempSync(join(cache, 'making-'))
    const making = join(folder, 'pinfold.db')
    await setUp('', making)
    // Another process may have created the template at the same time. Both are equal.
    renameSync(making, made)
    rmSync(folder, { recursive: true })
  }
  copyFileSync(made, file)
}

/** Creates the database `name` in the PostgreSQL at the URL `server`. Returns the URL of the database. */
export async function copyOfPostgres(server: string, name: string): Promise<string> {
  const template = `pinfold_test_${stateOfMigrations()}`
  await withClient(server, async (client) => {
    for (let tried = 0; ; tried++) {
      try {
        await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
        if (pooler) await configureForPooler(client, name, schema)
        return
      } catch (error) {
        // "undefined_database": the template is missing, so one process creates it. Tests of another state may remove it at any
        // time.
        if ((error as { code?: string }).code !== '3D000' || tried >= 5) throw error
        await makeTemplate(client, server, template)
      }
    }
  })
  return pooler ? pooledUrlOf(name) : urlOf(server, name)
}

/** Drops the database and ends connections to it. */
export async function dropDatabase(server: string, name: string): Promise<void> {
  await withClient(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
}

async function makeTemplate(client: pg.Client, server: string, template: string): Promise<void> {
  await client.query('SELECT pg_advisory_lock($1)', [turns])
  try {
    const { rows } = await client.query('SELECT datname FROM pg_database WHERE datname LIKE $1', ['pinfold\\_test\\_%'])
    if (rows.some(({ datname }) => datname === template)) return
    // Templates for other states of the migrations are removed. A process that needs one creates it again.
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`)
    const making = `${template}_making`
    await client.query(`CREATE DATABASE ${making}`)
    await setUp(urlOf(server, making), '')
    await client.query(`ALTER DATABASE ${making} RENAME TO ${template}`)
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [turns])
  }
}

async function setUp(database: string, file: string): Promise<void> {
  const db = await openDb({ database, file })
  try {
    await migrate(db, migrations, { finish: true })
  } finally {
    await db.close()
  }
}

function urlOf(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = `/${database}`
  url.searchParams.set('schema', schema)
  return url.href
}

async function withClient<T>(server: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
