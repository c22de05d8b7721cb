// Removes content that can no longer be pulled, while clients push and pull. It works in small steps, and each step checks again
// before it removes something.
import { setImmediate as turn } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Stored } from '#blobs/blobs.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { inRepo, lockRepo } from './blobs.store.ts'
import { type Collected, trashMs } from './collection.model.ts'
import * as store from './collection.store.ts'
import { addTrash, delayTrash, dueTrash, forgetTrash, isHeld, isStoreOf } from './locations.store.ts'
import { deleteUpload, lockUpload } from './uploads.store.ts'

export type Run = {
  app: App
  lease: Lease
  dryRun: boolean
  /** True for runs that no one requested. If listing the store is expensive, they examine a part of it. */
  scheduled: boolean
  /** Updated during the run. */
  collected: Collected
  /** Called after each step. Throws if another node may have the lease. */
  step(): Promise<void>
}

type Step = Run & {
  now: number
  cutoff: string
  /** Earliest time to remove content that loses its last row now. Computed anew each time, since a run may take long. */
  due(): string
}

const page = 500
/** Minimum age of a file without a row. It may belong to a push that has not written its row yet, which takes moments. */
const leastFileAgeMs = 3600_000
/** Minimum age in a bucket, which is searched less often. */
const leastObjectAgeMs = 24 * 3600_000
/** Minimum age of an upload to a bucket. Large content may take long. */
const leastUploadAgeMs = 48 * 3600_000

/** Removes content that was not touched during the grace period. With `dryRun` only counts it. */
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
    const removed = dryRun || loose.length === 0 ? loose.length : await removeLoose(lease, loose, cutoff)
    collected.links += removed
    await step()
    if (links.length < page) return
    after = links.at(-1)!
  }
}

/** Removes loose links by repository, since each is locked. Pushes to other repositories continue, and none waits for long. */
async function removeLoose(lease: Lease, loose: readonly store.Link[], cutoff: string): Promise<number> {
  let removed = 0
  for (const [id, links] of Map.groupBy(loose, ({ repo }) => repo)) {
    removed += await lease.tx(async (tx) => {
      let count = 0
      if (!(await lockRepo(tx, { id }, 'alone'))) return count
      for (const link of links) if (await store.deleteLooseLink(tx, link, cutoff)) count++
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
  // Times from the store are compared with the clock of the store.
  const theirs = await blobs.clock?.()
  const least = theirs === undefined ? leastFileAgeMs : leastObjectAgeMs
  const before = (theirs ?? now) - Math.max(config.blobGraceSeconds * 1000, least)
  if (!dryRun) await blobs.abortUploads?.((theirs ?? now) - leastUploadAgeMs)
  // A database without any blob is probably the wrong one for this folder.
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
 * Removes content from the store after its time in the trash. Content that the store did not remove is tried again after a day.
 */
async function emptyTrash({ app: { db, blobs, log, clock }, lease, step }: Step): Promise<void> {
  const now = clock().getTime()
  const later = new Date(now + leastObjectAgeMs).toISOString()
  for (;;) {
    // A backup copies the content that its database has, which may have been deleted since.
    if (await isHeld(db, clock().toISOString())) return
    const due = await dueTrash(db, new Date(now).toISOString(), page)
    if (due.length === 0) return
    // Locations are never reused, but a restored database may refer to deleted content again.
    const known = await store.knownLocations(db, locationsOf(due))
    if (known.size > 0) log.warn('content in the trash is in use, so it was not deleted', { contents: known.size })
    // Files have no row with a fence that could stop a node which stalled after its check.
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
