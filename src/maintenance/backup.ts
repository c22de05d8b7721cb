// Backup while servers run: a copy of an embedded database as of one moment, and the contents that the copy names. A location in
// the store is never reused, and nothing is removed during the backup. So the contents can be copied after the database.
import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import type { Blobs } from '#blobs/blobs.ts'
import { openDisk } from '#blobs/disk.ts'
import { blobFolder, openBlobs } from '#blobs/open.ts'
import { isBucket } from '#blobs/s3/bucket.ts'
import type { Config } from '#config.ts'
import { readFact } from '#db/facts.ts'
import { createSkew } from '#db/skew.ts'
import type { Db, Reader } from '#db/sql.ts'
import { takeServeLock } from '#db/sqlite/serve-lock.ts'
import { copyDatabase, openSnapshot } from '#db/sqlite/snapshot.ts'
import { knownLocations } from '#domains/registry/blobs/collection.store.ts'
import { blobIsAt, contentsAfter, locationIsKnown, trashAfter } from '#domains/registry/blobs/locations.store.ts'
import { syncFolder } from '#lib/files/folders.ts'
import { databaseFile, openExisting } from '#open-database.ts'
import { version } from '#version.ts'
import { requireOwn } from './bind-blobs.ts'
import { type Copied, copyCheckpoints, copyContents } from './copy-blobs.ts'
import { holdContents } from './hold-contents.ts'

export type BackupOptions = {
  /** The folder of the backups. All backups in the folder share their contents. */
  to: string
  /** Number of copies of an embedded database to keep; unlimited by default. */
  keep?: number
  progress?(copied: Copied): void
}

/** Description of a backup in `backup.json`; a backup without this file is not complete. */
export type Backup = {
  format: 1
  version: string
  time: string
  engine: Db['engine']
  database: string
  /** The fingerprint of the master key that the secrets are encrypted under; the key itself is in no backup. */
  masterKey: string
  contents: number
  bytes: number
  /** Locations of contents that were already lost or damaged in the store. */
  damaged: string[]
}

export type BackedUp = Backup & { folder: string; copied: number; removed: number }

const page = 500
const databaseName = 'pinfold.db'

export async function backup(config: Config, { to, keep, progress }: BackupOptions): Promise<BackedUp> {
  await using opening = new AsyncDisposableStack()
  const { db } = opening.adopt(await openExisting(config), (one) => one.close())
  const blobs = opening.adopt(await openBlobs(config.blobs, config.data, { env: config.aws }), (one) => one.close())
  await requireOwn(db, blobs)
  const skew = createSkew(db)
  await skew.measure()
  const database = (await readFact(db, 'database_id'))!
  await requireSeparateFolder(config, to)
  const target = opening.adopt(await openTarget(to, database), (one) => one.close())
  // Two backups must not run at once: a backup that keeps a limited number of copies would remove the other's new copy.
  const turn = takeServeLock(join(to, 'backup.lock'))
  if (!turn)
    throw new Error(`no backup was made, because another backup to ${to} is running; try again when it has finished`)
  opening.adopt(turn, (one) => one.release())
  const held = opening.adopt(await holdContents(db, skew, randomUUID()), (one) => one.end())
  const time = skew.now().toISOString()
  const folder = join(to, time.replaceAll(':', '-'))
  await mkdir(folder, { mode: 0o700 })
  syncFolder(to)
  const copy = await openCopy(db, config, folder)
  opening.defer(() => copy.close())
  // The server removes the pieces of an upload that ends, so these may be missing. After a restore this upload cannot be finished.
  const isWanted = async (location: string) => (await blobIsAt(copy, location)) || locationIsKnown(db, location)
  const stores = { isWanted, from: blobs, to: target, ...(progress ? { report: progress } : {}) }
  const named = await copyContents((after, most) => contentsAfter(copy, after, most), stores)
  // A PostgreSQL dump may be older than this backup and name blobs that are in the trash now, so the trash is copied too.
  if (db.engine === 'postgres') await copyContents((after, most) => trashAfter(db, after, most), stores)
  await copyCheckpoints(blobs, target)
  await held.check()
  const about: Backup = {
    format: 1,
    version,
    time,
    engine: db.engine,
    database,
    masterKey: (await readFact(db, 'master_key')) ?? '',
    contents: named.contents + named.there,
    bytes: named.bytes,
    damaged: named.damaged,
  }
  await writeComplete(join(folder, 'backup.json'), `${JSON.stringify(about, undefined, 2)}\n`)
  const removed = keep === undefined || db.engine !== 'sqlite' ? 0 : await prune(to, target, keep)
  return { ...about, folder, copied: named.contents, removed }
}

/**
 * Reader of the database that names the blobs. For an embedded database this is the new copy, for PostgreSQL the database itself.
 */
async function openCopy(db: Db, config: Config, folder: string): Promise<Reader & { close(): void }> {
  if (db.engine === 'postgres') return { all: db.all, get: db.get, close() {} }
  const file = join(folder, databaseName)
  await copyDatabase(databaseFile(config), file)
  return openSnapshot(file)
}

/** Throws if the backup would be in the server's own blob folder. There, `prune` would remove blobs of the server. */
async function requireSeparateFolder({ blobs, data }: Config, to: string): Promise<void> {
  if (isBucket(blobs)) return
  const real = (folder: string) => realpath(folder).catch(() => resolve(folder))
  const [own, target] = [await real(blobFolder(blobs, data)), await real(join(await real(to), 'blobs'))]
  if (target !== own && !target.startsWith(`${own}${sep}`)) return
  throw new Error(`no backup was made, because --to is in the blob folder of the server, ${own}; use another folder`)
}

/**
 * Opens the blob store of the backups. The store has its own id until `pinfold server complete-restore` links it to the database.
 */
async function openTarget(to: string, database: string): Promise<Blobs> {
  await mkdir(join(to, 'blobs'), { recursive: true, mode: 0o700 }).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(
      `no backup was made, because the folder ${to} cannot be created: ${code}; set --to to another folder`,
    )
  })
  const target = await openDisk(join(to, 'blobs'))
  const id = (await target.readId()) ?? (await target.keepId(`${randomUUID()} ${database}`))
  if (id.split(' ')[1] !== database)
    throw new Error(`no backup was made, because ${to} has backups of another database; set --to to another folder`)
  return target
}

/**
 * Removes all but the newest `keep` copies, and the contents that no remaining copy names. Returns the number of removed
 * contents.
 */
async function prune(to: string, target: Blobs, keep: number): Promise<number> {
  const entries = await readdir(to, { withFileTypes: true })
  const names = entries.flatMap((one) => (one.isDirectory() && /^\d{4}-.*Z$/.test(one.name) ? [one.name] : [])).sort()
  const complete: string[] = []
  for (const name of names) if (await isComplete(join(to, name))) complete.push(name)
  const kept = complete.slice(-keep)
  for (const name of names) {
    if (!kept.includes(name) && name < (kept[0] ?? '')) await rm(join(to, name), { recursive: true })
  }
  const copies = kept.map((name) => openSnapshot(join(to, name, databaseName)))
  let removed = 0
  const look = async (locations: string[]): Promise<void> => {
    const known = new Set<string>()
    for (const copy of copies) for (const one of await knownLocations(copy, locations)) known.add(one)
    const unknown = locations.filter((one) => !known.has(one))
    removed += unknown.length - (await target.removeAll(unknown)).length
  }
  const some: string[] = []
  for await (const { location } of target.list()) {
    some.push(location)
    if (some.length === page) await look(some.splice(0))
  }
  await look(some)
  for (const copy of copies) copy.close()
  return removed
}

async function isComplete(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, 'backup.json'), 'utf8').catch(() => undefined)
  return text !== undefined
}

async function writeComplete(file: string, text: string): Promise<void> {
  const part = await open(`${file}.part`, 'w', 0o600)
  await part.writeFile(text)
  await part.sync().finally(() => part.close())
  await rename(`${file}.part`, file)
  syncFolder(dirname(file))
}
