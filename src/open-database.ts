// Opens the database with the master key that fits. A key that does not fit is refused before anything is written.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { keepFact, readFact } from './db/facts.ts'
import { breakingChange, hasTable, type MigrateOptions, migrate, schemaState } from './db/migrate.ts'
import { migrationIds } from './db/migration-ids.ts'
import { livingNode } from './db/nodes.ts'
import { openDb } from './db/open.ts'
import { opensRows } from './db/sealed-rows.ts'
import type { Db } from './db/sql.ts'
import {
  makeMasterKey,
  parseMasterKey,
  promoteMasterKey,
  readMasterKey,
  readNextMasterKey,
} from './lib/crypto/master-key.ts'
import { createSealer, type Sealer } from './lib/crypto/seal.ts'

export { version } from './version.ts'

export type OpenDatabase = {
  db: Db
  sealer: Sealer
  /** The migrations that were missing. */
  applied: string[]
  close(): Promise<void>
}

/** No server has been there yet, so there is nothing to open. */
export class NotServedYet extends Error {
  override name = 'NotServedYet'
}

/**
 * Brings the database up to this version, and makes what is missing at a first start. Servers that share a database leave what
 * there is to be migrated to `pinfold migrate`, unless the settings say otherwise; `finish` is its option of this name.
 */
export async function openDatabase(
  config: Config,
  how: 'serve' | 'migrate' | 'finish' = 'serve',
  progress?: MigrateOptions['progress'],
): Promise<OpenDatabase> {
  return open(config, async (db) => {
    // The key comes first: a database that cannot be used is left as it is.
    const sealer = (await findKey(config, db)) ?? createSealer(makeMasterKey(config.data))
    if (db.shared && how === 'serve' && !config.migrateAtStart) await requireCurrent(db)
    else if (db.shared) await requireNobody(db, config, how === 'finish')
    const { migrations } = await import('./db/migrations/all.ts')
    const applied = await migrate(db, migrations, { finish: how === 'finish', ...(progress && { progress }) })
    const kept = await db.tx((tx) => keepFact(tx, 'master_key', sealer.fingerprint))
    if (kept !== sealer.fingerprint) throw wrongKey(config)
    return { db, sealer, applied }
  })
}

/** Throws where an earlier build has left tables: others may be at work on them. */
async function requireCurrent(db: Db): Promise<void> {
  if ((await schemaState(db, migrationIds())) !== 'old') return
  throw new Error(
    'the database is that of an earlier version; run pinfold migrate, or set PINFOLD_MIGRATE_AT_START=on to have servers do that',
  )
}

/** Throws while servers run that would break by what is missing. */
async function requireNobody(db: Db, { leaseMs }: Config, finish: boolean): Promise<void> {
  const breaking = () => breakingChange(db, migrationIds(), finish)
  if ((await breaking()) === undefined || !(await hasTable(db, 'nodes'))) return
  const alive = await livingNode(db, () => true, leaseMs)
  // Not where it has made the change itself meanwhile.
  const id = alive && (await breaking())
  if (id === undefined) return
  throw new Error(
    `migration ${id} changes what servers of the earlier version need, and one runs, as ${alive!.url}; stop them all first`,
  )
}

/** For commands that a server should have been there for: makes and changes nothing. */
export async function openExisting(config: Config): Promise<OpenDatabase> {
  const none = `nothing has been served from ${config.database === '' ? config.data : 'this database'} yet`
  if (config.database === '' && !existsSync(databaseFile(config))) throw new NotServedYet(`${none}: it has no database`)
  return open(config, async (db) => {
    const state = await schemaState(db, migrationIds())
    if (state === 'none') throw new NotServedYet(`${none}: it has no tables`)
    if (state === 'old') {
      throw new Error('the database is that of an earlier version; start the server, or run pinfold migrate, first')
    }
    const sealer = await findKey(config, db)
    if (!sealer) throw new NotServedYet(`${none}: it has no signing key`)
    return { db, sealer, applied: [] }
  })
}

/** Why nothing has been served from there, where that is so; makes and changes nothing. */
export async function notServedYet(config: Config): Promise<string | undefined> {
  const none = `nothing has been served from ${config.database === '' ? config.data : 'this database'} yet`
  if (config.database === '') return existsSync(databaseFile(config)) ? undefined : `${none}: it has no database`
  const db = await openDb({ ...config, file: databaseFile(config) })
  try {
    return (await schemaState(db, migrationIds())) === 'none' ? `${none}: it has no tables` : undefined
  } finally {
    await db.close()
  }
}

async function open(config: Config, prepare: (db: Db) => Promise<Omit<OpenDatabase, 'close'>>): Promise<OpenDatabase> {
  const db = await openDb({ ...config, file: databaseFile(config) })
  try {
    return { ...(await prepare(db)), close: () => db.close() }
  } catch (error) {
    await db.close()
    throw error
  }
}

/** Where the embedded database is. */
export function databaseFile({ data }: Config): string {
  return join(data, 'pinfold.db')
}

/**
 * The key that everything in the database is encrypted under; where nothing is, the present one, if there is any. A
 * rotation that did not come to its end leaves two keys, of which one fits.
 */
async function findKey(config: Config, db: Db): Promise<Sealer | undefined> {
  const inFile = config.masterKey === ''
  const keys = inFile
    ? [readMasterKey(config.data), readNextMasterKey(config.data)]
    : [config.masterKey, config.masterKeyNew].map((text) => (text === '' ? undefined : parseMasterKey(text)))
  const [present, next] = keys.map((key) => key && createSealer(key))
  const wanted = (await hasTable(db, 'facts')) ? await readFact(db, 'master_key') : undefined
  const fits = async (sealer: Sealer | undefined): Promise<boolean> => {
    if (!sealer) return false
    return wanted === undefined ? (await opensRows(db, sealer)) === true : sealer.fingerprint === wanted
  }
  if (await fits(present)) return present
  if (await fits(next)) {
    if (inFile) promoteMasterKey(config.data)
    return next
  }
  // Any key will do to learn whether there is anything that it would have to open.
  if (wanted !== undefined || (await opensRows(db, present ?? createSealer(new Uint8Array(32)))) !== undefined) {
    throw wrongKey(config, present)
  }
  return present
}

function wrongKey({ data, masterKey }: Config, present?: Sealer): Error {
  const where = join(data, 'master.key')
  const what = 'the secrets in the database are encrypted under another master key than'
  if (masterKey !== '') {
    return new Error(`${what} PINFOLD_MASTER_KEY; set it to the one that the database was served with before`)
  }
  const restore = `put back the copy of ${where} that was made with the backups, or set PINFOLD_MASTER_KEY to what it held`
  if (present) return new Error(`${what} the one in ${where}; ${restore}`)
  return new Error(
    `${where} is missing, and the secrets in the database are encrypted under it; ${restore}. No new key was made`,
  )
}
