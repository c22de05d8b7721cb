// Opens the database with its master key. With another key, opening fails before anything is written.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { opensRows } from './db/encrypted-rows.ts'
import { keepFact, readFact } from './db/facts.ts'
import { breakingChange, hasTable, type MigrateOptions, migrate, schemaState } from './db/migrate.ts'
import { migrationIds, phaseOf } from './db/migration-ids.ts'
import { liveNode, type NodeBeat, type NodeRow, nodeBeats, startedSince } from './db/nodes.ts'
import { checkPooler, openDb, openDirect } from './db/open.ts'
import type { Db, Tx } from './db/sql.ts'
import {
  makeMasterKey,
  parseMasterKey,
  promoteMasterKey,
  readMasterKey,
  readNextMasterKey,
} from './lib/crypto/master-key.ts'
import { createSecretCipher, type SecretCipher } from './lib/crypto/secret-cipher.ts'
import { version } from './version.ts'

export type OpenDatabase = {
  db: Db
  cipher: SecretCipher
  /** IDs of the migrations that were applied. */
  applied: string[]
  close(): Promise<void>
}

/** Error for a database or data folder that no server has used yet. */
export class NotServedYet extends Error {
  override name = 'NotServedYet'
}

/**
 * Error for a migration that would break a running server. Either the change needs all servers to be stopped, or it removes data
 * that the server needs.
 */
export class ServerRunning extends Error {
  override name = 'ServerRunning'
  constructor({ version, url }: NodeRow, does: 'runs' | 'has started', change?: string) {
    super(
      change === undefined
        ? `the database was not migrated, because a server of version ${version} ${does} as ${url}; stop it first`
        : `migration ${change} was not applied, because servers of the earlier version cannot run with it, and one ${does} as ${url}; stop all servers first`,
    )
  }
}

/**
 * Migrates the database to this version. At the first start, creates what is missing. If servers share a database, they leave
 * migrations to `pinfold migrate`, unless a setting allows them. `finish` is the option of `pinfold migrate` with this name.
 */
export async function openDatabase(
  config: Config,
  how: 'serve' | 'migrate' | 'finish' = 'serve',
  progress?: MigrateOptions['progress'],
): Promise<OpenDatabase> {
  return open(config, async (db) => {
    const isPooled = await checkPooler(config)
    // Checks the key first, so that a database that cannot be used stays unchanged.
    const cipher = (await findKey(config, db)) ?? createSecretCipher(makeMasterKey(config.data))
    if (db.shared && how === 'serve' && !config.migrateAtStart) await requireCurrent(db)
    // If no migration is missing, `PINFOLD_DATABASE_DIRECT` is not needed.
    const isDone = isPooled && how === 'serve' && (await schemaState(db, migrationIds())) === 'current'
    const applied = isDone ? [] : await migrateAll(config, isPooled ? await openDirect(config) : db, db, how, progress)
    const kept = await db.tx((tx) => keepFact(tx, 'master_key', cipher.fingerprint))
    if (kept !== cipher.fingerprint) throw wrongKey(config)
    return { db, cipher, applied }
  })
}

/** Migrates through `target`, which is `db` or a separate connection to the same database. Closes a separate connection. */
async function migrateAll(
  config: Config,
  target: Db,
  db: Db,
  how: 'serve' | 'migrate' | 'finish',
  progress: MigrateOptions['progress'],
): Promise<string[]> {
  const { migrations } = await import('./db/migrations/all.ts')
  const apply = async (finish: boolean): Promise<string[]> => {
    const mayBreak = target.shared && (await requireNoServers(target, config, finish))
    return migrate(target, migrations, { finish, ...(mayBreak && { mayBreak }), ...(progress && { progress }) })
  }
  try {
    const applied = await apply(false)
    if (how === 'finish') applied.push(...(await apply(true)))
    return applied
  } finally {
    if (target !== db) await target.close()
  }
}

/** Throws if migrations are missing, since other servers may be using the tables of the earlier version. */
async function requireCurrent(db: Db): Promise<void> {
  if ((await schemaState(db, migrationIds())) !== 'old') return
  throw new Error(
    'the database has the schema of an earlier version; run pinfold migrate, or set PINFOLD_MIGRATE_AT_START=on so that servers migrate it',
  )
}

/**
 * Throws if the missing migrations would break running servers. Returns a function that repeats the check in the transaction of
 * such a change, for servers that have started since. Servers that start later wait until they see the change.
 */
export async function requireNoServers(
  db: Db,
  { leaseMs }: Pick<Config, 'leaseMs'>,
  finish: boolean,
): Promise<(tx: Tx, id: string) => Promise<void>> {
  const breaking = () => breakingChange(db, migrationIds(), finish)
  const isBreaking = (await breaking()) !== undefined
  const isWatched = (finish || isBreaking) && (await hasTable(db, 'nodes'))
  // Heartbeats are read before the check. So a server that starts during the check counts as started since.
  const still = isWatched ? await nodeBeats(db) : new Map<string, NodeBeat>()
  const other = isWatched && finish && (await liveNode(db, isOther, leaseMs))
  if (other) throw new ServerRunning(other, 'runs')
  const alive = isWatched && isBreaking && (await liveNode(db, () => true, leaseMs))
  // Another process may have applied the change meanwhile.
  const change = alive ? await breaking() : undefined
  if (alive && change !== undefined) throw new ServerRunning(alive, 'runs', change)
  return async (tx, id) => {
    if (!(await hasTable(tx, 'nodes'))) return
    const isContraction = phaseOf(id) === 'contract'
    const started = await startedSince(tx, still, isContraction ? isOther : () => true)
    if (started) throw new ServerRunning(started, 'has started', isContraction ? undefined : id)
  }
}

const isOther = (node: NodeRow): boolean => node.version !== version

/** Opens an existing database for commands that need one. Creates nothing, and changes nothing. */
export async function openExisting(config: Config): Promise<OpenDatabase> {
  const none = `no server has used ${config.database === '' ? config.data : 'this database'} yet`
  if (config.database === '' && !existsSync(databaseFile(config))) throw new NotServedYet(`${none}: it has no database`)
  return open(config, async (db) => {
    const state = await schemaState(db, migrationIds())
    if (state === 'none') throw new NotServedYet(`${none}: it has no tables`)
    if (state === 'old') {
      throw new Error(
        'the database has the schema of an earlier version; make a backup with that version, then run pinfold migrate or start the server',
      )
    }
    const cipher = await findKey(config, db)
    if (!cipher) throw new NotServedYet(`${none}: it has no signing key`)
    return { db, cipher, applied: [] }
  })
}

/** Reason why no server has used this database or data folder yet. Undefined if one has. Creates nothing, and changes nothing. */
export async function notServedYet(config: Config): Promise<string | undefined> {
  const none = `no server has used ${config.database === '' ? config.data : 'this database'} yet`
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

/** Throws unless the database responds and accepts writes. */
export async function checkDatabase(config: Config): Promise<void> {
  const db = await openDb({ ...config, file: databaseFile(config) })
  await db.ping().finally(() => db.close())
}

/** Path of the SQLite database in the data folder. */
export function databaseFile({ data }: Config): string {
  return join(data, 'pinfold.db')
}

/**
 * Key with which the database is encrypted. After an interrupted rotation, there are two keys, and one of them matches. If
 * nothing is encrypted yet, returns the current key, or undefined if there is none.
 */
async function findKey(config: Config, db: Db): Promise<SecretCipher | undefined> {
  const inFile = config.masterKey === ''
  const keys = inFile
    ? [readMasterKey(config.data), readNextMasterKey(config.data)]
    : [config.masterKey, config.masterKeyNew].map((text) => (text === '' ? undefined : parseMasterKey(text)))
  const [present, next] = keys.map((key) => key && createSecretCipher(key))
  const wanted = (await hasTable(db, 'facts')) ? await readFact(db, 'master_key') : undefined
  const fits = async (cipher: SecretCipher | undefined): Promise<boolean> => {
    if (!cipher) return false
    return wanted === undefined ? (await opensRows(db, cipher)) === true : cipher.fingerprint === wanted
  }
  if (await fits(present)) return present
  if (await fits(next)) {
    if (inFile) promoteMasterKey(config.data)
    return next
  }
  // The key does not matter here: any key shows whether there is encrypted data.
  if (wanted !== undefined || (await opensRows(db, present ?? createSecretCipher(new Uint8Array(32)))) !== undefined) {
    throw wrongKey(config, present)
  }
  return present
}

function wrongKey({ data, masterKey }: Config, present?: SecretCipher): Error {
  const where = join(data, 'master.key')
  const what = 'the secrets in the database are encrypted with another master key than'
  if (masterKey !== '') {
    return new Error(`${what} PINFOLD_MASTER_KEY; set it to the key that the server used before`)
  }
  const restore = `restore ${where} from a backup, or set PINFOLD_MASTER_KEY to its content`
  if (present) return new Error(`${what} the one in ${where}; ${restore}`)
  return new Error(
    `${where} is missing, and the secrets in the database are encrypted with it; ${restore}. No new key was created`,
  )
}
