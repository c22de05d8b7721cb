// Removes what nobody can pull: while clients push and pull, in small steps, each of which checks again what it removes.
import { randomUUID } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Stored } from '#blobs/blobs.ts'
import { notFound } from '#lib/errors.ts'
import type { Collected, Collection, Collector } from './collection.model.ts'
import * as store from './collection.store.ts'
import { deleteUpload, partsOf } from './uploads.store.ts'

type Needs = Pick<App, 'db' | 'blobs' | 'clock' | 'log'> & { graceSeconds: number }
type Run = Needs & { cutoff: string; dryRun: boolean; collected: Collected }

const page = 500
const remembered = 10
/** What no row names may belong to a push between its file and its row; that takes moments. */
const leastFileAgeMs = 3600_000

export function createCollector(needs: Needs): Collector {
  const latest: Collection[] = []
  const running = new Set<Collection>()
  return {
    start(dryRun) {
      const same = [...running].find((one) => one.dryRun === dryRun)
      if (same) return same
      const collected: Collected = { links: 0, blobs: 0, bytes: 0, uploads: 0, files: 0, fileBytes: 0 }
      const cutoff = new Date(needs.clock().getTime() - needs.graceSeconds * 1000).toISOString()
      const done = collect({ ...needs, cutoff, dryRun, collected })
      const collection: Collection = { id: randomUUID(), dryRun, collected, done }
      const ended = () => {
        running.delete(collection)
        if (Object.values(collected).some((count) => count > 0))
          needs.log.info('blobs collected', { dryRun, ...collected })
      }
      done.then(ended, ended)
      running.add(collection)
      latest.push(collection)
      if (latest.length > remembered) latest.shift()
      return collection
    },
    find(id) {
      const found = latest.find((one) => one.id === id)
      if (!found) throw notFound('registry.pinfold.dev/Collection', id)
      return found
    },
    async close() {
      await Promise.allSettled([...running].map(({ done }) => done))
    },
  }
}

async function collect(run: Run): Promise<void> {
  await collectLinks(run)
  await collectBlobs(run)
  await collectUploads(run)
  await collectFiles(run)
}

async function collectLinks({ db, cutoff, dryRun, collected }: Run): Promise<void> {
  for (let after = { repo: 0, digest: '' }; ; await turn()) {
    const links = await store.pageOfLinks(db, after, cutoff, page)
    const loose = links.filter(({ kept }) => !kept)
    const removed =
      dryRun || loose.length === 0
        ? loose.length
        : await db.tx(async (tx) => {
            let count = 0
            for (const link of loose) if (await store.deleteLooseLink(tx, link, cutoff)) count++
            return count
          })
    collected.links += removed
    if (links.length < page) return
    after = links.at(-1)!
  }
}

async function collectBlobs({ db, blobs, cutoff, dryRun, collected }: Run): Promise<void> {
  for (let after = ''; ; await turn()) {
    const stored = await store.pageOfBlobs(db, after, cutoff, page)
    for (const blob of stored.filter(({ kept }) => !kept)) {
      // Whoever pulls it now has opened the file, and reads on.
      if (!dryRun && !(await db.tx((tx) => store.deleteUnlinkedBlob(tx, blob)))) continue
      if (!dryRun) await blobs.remove(blob.location)
      collected.blobs++
      collected.bytes += blob.size
    }
    if (stored.length < page) return
    after = stored.at(-1)!.digest
  }
}

async function collectUploads({ db, blobs, cutoff, dryRun, collected }: Run): Promise<void> {
  for (let after = ''; ; await turn()) {
    const stale = await store.staleUploads(db, cutoff, after, page)
    for (const { uid } of stale) {
      const parts = dryRun
        ? []
        : await db.tx(async (tx) => {
            if (!(await store.isStale(tx, uid, cutoff))) return undefined
            const had = await partsOf(tx, uid)
            await deleteUpload(tx, uid)
            return had
          })
      if (!parts) continue
      for (const { location } of parts) await blobs.remove(location)
      collected.uploads++
    }
    if (stale.length < page) return
    after = stale.at(-1)!.uid
  }
}

async function collectFiles({ db, blobs, clock, log, graceSeconds, dryRun, collected }: Run): Promise<void> {
  const before = clock().getTime() - Math.max(graceSeconds * 1000, leastFileAgeMs)
  // A database without any blob is more likely the wrong one for this folder than right about all of it.
  const isEmpty = (await store.pageOfBlobs(db, '', '', 1)).length === 0
  let spared = 0
  const remove = async (files: readonly Stored[]): Promise<void> => {
    const known = await store.knownLocations(
      db,
      files.map(({ location }) => location),
    )
    for (const { location, size } of files.filter((file) => !known.has(file.location))) {
      if (isEmpty && !location.startsWith('uploads/')) {
        spared++
        continue
      }
      if (!dryRun) await blobs.remove(location)
      collected.files++
      collected.fileBytes += size
    }
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
