// Removes what nobody can pull: while clients push and pull, in small steps, each of which checks again what it removes.
import { setImmediate as turn } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Stored } from '#blobs/blobs.ts'
import type { Lease } from '#db/leases.ts'
import { inRepo, lockRepo } from './blobs.store.ts'
import type { Collected } from './collection.model.ts'
import * as store from './collection.store.ts'
import { deleteUpload, lockUpload, partsOf } from './uploads.store.ts'

export type Run = {
  app: App
  lease: Lease
  dryRun: boolean
  /** Counted up as it goes on. */
  collected: Collected
  /** Called after each step. Throws when another node may have the lease by now. */
  step(): Promise<void>
}

type Step = Run & { now: number; cutoff: string }

const page = 500
/** What no row names may belong to a push between its file and its row; that takes moments. */
const leastFileAgeMs = 3600_000

/** Removes, or with `dryRun` only counts, what has not been touched for the time of grace. */
export async function collect(run: Run): Promise<void> {
  const { app } = run
  const now = app.clock().getTime()
  const step = { ...run, now, cutoff: new Date(now - app.config.blobGraceSeconds * 1000).toISOString() }
  await collectLinks(step)
  await collectBlobs(step)
  await collectUploads(step)
  await collectFiles(step)
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

/** Those of one repo together, since it is locked for that: pushes to others go on, and none waits for long. */
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

async function collectBlobs({ app: { db, blobs }, lease, cutoff, dryRun, collected, step }: Step): Promise<void> {
  for (let after = ''; ; await turn()) {
    const stored = await store.pageOfBlobs(db, after, cutoff, page)
    for (const blob of stored.filter(({ kept }) => !kept)) {
      // Whoever pulls it now has opened the file, and reads on.
      if (!dryRun && !(await lease.tx((tx) => store.deleteUnlinkedBlob(tx, blob), inRepo))) continue
      if (!dryRun) await blobs.remove(blob.location)
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
      const parts = dryRun
        ? []
        : await lease.tx(async (tx) => {
            await lockUpload(tx, uid)
            if (!(await store.isStale(tx, uid, cutoff))) return undefined
            const had = await partsOf(tx, uid)
            await deleteUpload(tx, uid)
            return had
          }, inRepo)
      if (!parts) continue
      for (const { location } of parts) await blobs.remove(location)
      collected.uploads++
    }
    await step()
    if (stale.length < page) return
    after = stale.at(-1)!.uid
  }
}

async function collectFiles({ app, now, lease, dryRun, collected, step }: Step): Promise<void> {
  const { db, blobs, log, config } = app
  const before = now - Math.max(config.blobGraceSeconds * 1000, leastFileAgeMs)
  // A database without any blob is more likely the wrong one for this folder than right about all of it.
  const isEmpty = (await store.pageOfBlobs(db, '', '', 1)).length === 0
  let spared = 0
  const remove = async (files: readonly Stored[]): Promise<void> => {
    const known = await store.knownLocations(
      db,
      files.map(({ location }) => location),
    )
    // A file has no row that could refuse a node which has stalled since it looked.
    lease.check()
    for (const { location, size } of files.filter((file) => !known.has(file.location))) {
      if (isEmpty && !location.startsWith('uploads/')) {
        spared++
        continue
      }
      if (!dryRun) await blobs.remove(location)
      collected.files++
      collected.fileBytes += size
    }
    await step()
  }
  let old: Stored[] = []
  for await (const file of blobs.list()) {
    if (file.changed < before) old.push(file)
    if (old.length < page) continue
    await remove(old)
    old = []
  }
  if (old.length > 0) await remove(old)
  if (spared > 0) log.warn('blobs left alone, since the database knows of none', { files: spared })
}
