// Removes content that can no longer be pulled, while clients push and pull. Content is removed in batches. Each batch checks
// again whether the content is unused.
import { setImmediate as turn } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Stored } from '#blobs/blobs.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { inRepo, lockRepo } from './blobs.store.ts'
import { type Collected, trashMs } from './collection.model.ts'
import * as store from './collection.store.ts'
import { addTrash, delayTrash, dueTrash, forgetTrash, isBackupRunning, isStoreOf } from './locations.store.ts'
import { deleteUpload, lockUpload } from './uploads.store.ts'

export type Run = {
  app: App
  lease: Lease
  dryRun: boolean
  /**
   * True if the server scheduled the collection and no one requested it. If listing the store is expensive, a scheduled
   * collection examines only a part of the store.
   */
  scheduled: boolean
  /** Counts of removed content. They change during the collection. */
  collected: Collected
  /** Called after each batch. Throws if another server may have the lease. */
  step(): Promise<void>
}

type Step = Run & {
  now: number
  cutoff: string
  /**
   * Earliest time at which the store may remove content that loses its last row now. Computed for each batch, since time passes
   * during a collection.
   */
  due(): string
}

const page = 500
/** Minimum age of a file without a row before its removal. A push that has stored the file may not have written the row yet. */
const leastFileAgeMs = 3600_000
/** Minimum age of an object without a row before its removal from a bucket. Buckets are searched less often than folders. */
const leastObjectAgeMs = 24 * 3600_000
/** Minimum age of an unfinished upload to a bucket before it is aborted. Uploads of large content may take long. */
const leastUploadAgeMs = 48 * 3600_000

/** Removes content that was not touched during the grace period. With `dryRun`, only counts this content. */
export async function collect(run: Run): Promise<void> {
  const { app } = run
  const now = app.clock().getTime()
  const cutoff = new Date(now - app.config.blobGraceSeconds * 1000).toISOString()
  const due = () => new Date(app.clock().getTime() + trashMs(app.config)).toISOString()
  const step = { ...run, now, cutoff, due }
  await collectLinks(step)
  await collectBlobs(step)
  await collectUploads(step)
  // The folder or bucket may have been replaced since the start. Content of another store must not be removed.
  if (!(await isStoreOf(app.db, await app.blobs.readId())))
    throw new Error('the blob store was replaced by another one')
  await collectFiles(step)
  if (!run.dryRun) await emptyTrash(step)
}

async function collectLinks({ app: { db }, lease, cutoff, dryRun, collected, step }: Step): Promise<void> {
  for (let after = { repo: 0, digest: '' }; ; await turn()) {
    const links = await store.pageOfLinks(db, after, cutoff, page)
    const loose = links.filter(({ kept }) => !kept)
    const removed = dryRun || loose.length === 0 ? loose.length : await removeUnneededLinks(lease, loose, cutoff)
    collected.links += removed
    await step()
    if (links.length < page) return
    after = links.at(-1)!
  }
}

/**
 * Removes links that no manifest needs, one repository after the other, since each repository is locked. Pushes to other
 * repositories continue meanwhile.
 */
async function removeUnneededLinks(lease: Lease, loose: readonly store.Link[], cutoff: string): Promise<number> {
  let removed = 0
  for (const [id, links] of Map.groupBy(loose, ({ repo }) => repo)) {
    removed += await lease.tx(async (tx) => {
      let count = 0
      if (!(await lockRepo(tx, { id }, 'alone'))) return count
      for (const link of links) if (await store.deleteUnneededLink(tx, link, cutoff)) count++
      return count
    }, inRepo)
  }
  return removed
}

async function collectBlobs({ app: { db }, lease, cutoff, due, dryRun, collected, step }: Step): Promise<void> {
  for (let after = ''; ; await turn()) {
    const stored = await store.pageOfBlobs(db, after, cutoff, page)
    for (const blob of stored.filter(({ kept }) => !kept)) {
      const remove = async (tx: Tx): Promise<boolean> => {
        if (!(await store.deleteUnlinkedBlob(tx, blob))) return false
        await addTrash(tx, blob, due())
        return true
      }
      if (!dryRun && !(await lease.tx(remove, inRepo))) continue
      collected.blobs++
      collected.bytes += blob.size
    }
    await step()
    if (stored.length < page) return
    after = stored.at(-1)!.digest
  }
}

async function collectUploads({ app: { db, blobs }, lease, cutoff, dryRun, collected, step }: Step): Promise<void> {
  for (let after = ''; ; await turn()) {
    const stale = await store.staleUploads(db, cutoff, after, page)
    for (const { uid } of stale) {
      const ended = dryRun
        ? { locations: [] }
        : await lease.tx(async (tx) => {
            await lockUpload(tx, uid)
            return (await store.isStale(tx, uid, cutoff)) ? deleteUpload(tx, uid) : undefined
          }, inRepo)
      if (!ended) continue
      for (const location of ended.locations) await blobs.remove(location)
      collected.uploads++
    }
    await step()
    if (stale.length < page) return
    after = stale.at(-1)!.uid
  }
}

async function collectFiles({ app, now, due, lease, scheduled, dryRun, collected, step }: Step): Promise<void> {
  const { db, blobs, log, config } = app
  // The store sets the times of its files, so its clock is used for comparing them.
  const theirs = await blobs.clock?.()
  const least = theirs === undefined ? leastFileAgeMs : leastObjectAgeMs
  const before = (theirs ?? now) - Math.max(config.blobGraceSeconds * 1000, least)
  if (!dryRun) await blobs.abortUploads?.((theirs ?? now) - leastUploadAgeMs)
  // If the database has no blobs, it probably belongs to another store. Then only unfinished uploads are removed.
  const isEmpty = (await store.pageOfBlobs(db, '', '', 1)).length === 0
  let spared = 0
  const remove = async (files: readonly Stored[]): Promise<void> => {
    const known = await store.knownLocations(db, locationsOf(files))
    const strays = files.filter(({ location }) => !known.has(location))
    const mayGo = strays.filter(({ location }) => !isEmpty || location.startsWith('uploads/'))
    spared += strays.length - mayGo.length
    const waiting = await store.trashedLocations(db, locationsOf(mayGo))
    const found = mayGo.filter(({ location }) => !waiting.has(location))
    if (!dryRun && found.length > 0) {
      await lease.tx(async (tx) => {
        for (const file of found) await addTrash(tx, file, due())
      })
    }
    collected.files += found.length
    collected.fileBytes += found.reduce((sum, { size }) => sum + size, 0)
    await step()
  }
  let old: Stored[] = []
  for await (const file of blobs.list(scheduled ? hourOfWeek(theirs ?? now) : undefined)) {
    if (file.changed < before) old.push(file)
    if (old.length < page) continue
    await remove(old)
    old = []
  }
  if (old.length > 0) await remove(old)
  if (spared > 0) log.warn('blobs were not deleted, because the database has no blobs', { files: spared })
}

const locationsOf = (files: readonly { location: string }[]): string[] => files.map(({ location }) => location)

const hourOfWeek = (ms: number): number => Math.floor(ms / 3600_000) % 168

/**
 * Removes content from the store after its time in the trash. If the store fails to remove content, its removal is tried again
 * after a day.
 */
async function emptyTrash({ app: { db, blobs, log, clock }, lease, step }: Step): Promise<void> {
  const now = clock().getTime()
  const later = new Date(now + leastObjectAgeMs).toISOString()
  for (;;) {
    // A running backup may still have to copy content that was deleted after the backup copied the database. So nothing is
    // removed during a backup.
    if (await isBackupRunning(db, clock().toISOString())) return
    const due = await dueTrash(db, new Date(now).toISOString(), page)
    if (due.length === 0) return
    // Locations are never reused, but a restored database may refer to deleted content again.
    const known = await store.knownLocations(db, locationsOf(due))
    if (known.size > 0) log.warn('content in the trash is in use, so it was not deleted', { contents: known.size })
    // Checks the lease right before deleting files. A fence in the database cannot stop a server that lost the lease from
    // deleting files.
    lease.check()
    const left = new Set(await blobs.removeAll(locationsOf(due).filter((location) => !known.has(location))))
    if (left.size > 0) log.error('content could not be deleted from the blob store', { contents: left.size })
    await lease.tx(async (tx) => {
      await delayTrash(tx, [...left], later)
      await forgetTrash(
        tx,
        locationsOf(due).filter((location) => !left.has(location)),
      )
    })
    await step()
  }
}
