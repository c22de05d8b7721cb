// Databases with all migrations and the built-in roles, as a server leaves them at its first start. A template is made once for
// each state of the migrations and the roles. Copying it is ten times as fast.
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '#db/migrate.ts'
import { migrations } from '#db/migrations/all.ts'
import { openDb } from '#db/open.ts'
import { builtInRoles } from '#domains/iam/access/built-in-roles.ts'
import { installBuiltInRoles } from '#domains/iam/roles/roles.service.ts'
import { configureForPooler, pooledUrlOf, pooler } from './pooler.ts'

const sources = join(import.meta.dirname, '../../src')
const cache = join(import.meta.dirname, '../../node_modules/.cache/pinfold-test')
/** Schema that contains the tables of a copy in PostgreSQL. */
const schema = 'pinfold'
/** Number of an advisory lock that has no other use. */
const turns = 7_040_113

let state: string | undefined

/** Hash of the migrations and the roles, and of the code that writes them. */
function stateOfTemplate(): string {
  if (state !== undefined) return state
  const hash = createHash('sha256').update(JSON.stringify(builtInRoles))
  for (const file of globSync(['db/**/*.ts', 'domains/iam/roles/*.ts'], { cwd: sources }).sort()) {
    hash.update(file).update(readFileSync(join(sources, file)))
  }
  state = hash.digest('hex').slice(0, 16)
  return state
}

/** Creates an embedded database at `file`. */
export async function copyOfSqlite(file: string): Promise<void> {
  const made = join(cache, `${stateOfTemplate()}.db`)
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

/** Creates the database `name` in the PostgreSQL at the URL `server`. Returns the URL for a server. */
export async function copyOfPostgres(server: string, name: string): Promise<string> {
  const { url, schema } = await copiedDatabase(server, name)
  return pooler ? pooledUrlOf(name) : withSettings(url, { schema })
}

/** Creates the database `name`. Returns its URL without the pooler and without the schema, and its schema. */
export async function copiedDatabase(server: string, name: string): Promise<{ url: string; schema: string }> {
  const template = `pinfold_test_${stateOfTemplate()}`
  await withClient(server, async (client) => {
    for (let tried = 0; ; tried++) {
      try {
        await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}${await copyingFiles(client)}`)
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
  return { url: urlOf(server, name), schema }
}

/** Clause that copies the files of the template, which costs half as much as copying page by page through the log. */
async function copyingFiles(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ version: number }>(
    `SELECT current_setting('server_version_num')::int AS version`,
  )
  // PostgreSQL 14 and older always copy files.
  return rows[0]!.version >= 150_000 ? ' STRATEGY FILE_COPY' : ''
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
    await setUp(withSettings(urlOf(server, making), { schema }), '')
    await client.query(`ALTER DATABASE ${making} RENAME TO ${template}`)
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [turns])
  }
}

async function setUp(database: string, file: string): Promise<void> {
  const db = await openDb({ database, file })
  try {
    await migrate(db, migrations, { finish: true })
    await installBuiltInRoles(db, new Date().toISOString())
  } finally {
    await db.close()
  }
}

/** Adds settings to the URL of a database. */
export function withSettings(database: string, settings: Record<string, string>): string {
  const url = new URL(database)
  for (const [name, value] of Object.entries(settings)) url.searchParams.set(name, value)
  return url.href
}

function urlOf(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.href
}

/** Methods of a client that the published types lack. */
type Client = pg.Client & { ref(): void; unref(): void }

const clients = new Map<string, Promise<Client>>()
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs the work on a connection that this process keeps open, since a new connection costs as much as the work. Works run one after
 * the other.
 */
function withClient<T>(server: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const done = last.then(async () => {
    const client = await (clients.get(server) ?? openClient(server))
    client.ref()
    // An idle connection does not keep the process alive.
    return work(client).finally(() => client.unref())
  })
  last = done.catch(() => {})
  return done
}

function openClient(server: string): Promise<Client> {
  const client = new pg.Client({ connectionString: server }) as Client
  const forget = () => void clients.delete(server)
  client.on('error', forget).on('end', forget)
  const opened = client.connect().then(() => client)
  clients.set(server, opened)
  opened.catch(forget)
  return opened
}
