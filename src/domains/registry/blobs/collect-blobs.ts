// Removes what nobody can pull: while clients push and pull, in small steps, each of which checks again what it removes.
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
  /** Nobody has asked for it: where listing costs, a part of the store will do. */
  scheduled: boolean
  /** Counted up as it goes on. */
  collected: Collected
  /** Called after each step. Throws when another node may have the lease by now. */
  step(): Promise<void>
}

type Step = Run & {
  now: number
  cutoff: string
  /** When what loses its last row now may go; a run may take long. */
  due(): string
}

const page = 500
/** What no row names may belong to a push between its file and its row; that takes moments. */
const leastFileAgeMs = 3600_000
/** In a bucket; looked for less often, so there is no hurry. */
const leastObjectAgeMs = 24 * 3600_000
/** A large content may be on its way to a bucket for long. */
const leastUploadAgeMs = 48 * 3600_000

/** Removes, or with `dryRun` only counts, what has not been touched for the time of grace. */
export async function collect(run: Run): Promise<void> {
  const { app } = run
  const now = app.clock().getTime()
  const cutoff = new Date(now - app.config.blobGraceSeconds * 1000).toISOString()
  const due = () => new Date(app.clock().getTime() + trashMs(app.config)).toISOString()
  const step = { ...run, now, cutoff, due }
  await collectLinks(step)
  await collectBlobs(step)
  await collectUploads(step)
  // Someone may have put another folder or bucket in its place since the start; nothing of that one is ours to remove.
  if (!(await isStoreOf(app.db, await app.blobs.readId()))) throw new Error('the store of blobs is another one by now')
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
  // Times that the store has written are compared with its own clock.
  const theirs = await blobs.clock?.()
  const least = theirs === undefined ? leastFileAgeMs : leastObjectAgeMs
  const before = (theirs ?? now) - Math.max(config.blobGraceSeconds * 1000, least)
  if (!dryRun) await blobs.abortUploads?.((theirs ?? now) - leastUploadAgeMs)
  // A database without any blob is more likely the wrong one for this folder than right about all of it.
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
  if (spared > 0) log.warn('blobs left alone, since the database knows of none', { files: spared })
}

const locationsOf = (files: readonly { location: string }[]): string[] => files.map(({ location }) => location)

const hourOfWeek = (ms: number): number => Math.floor(ms / 3600_000) % 168

/** Removes from the store what has waited for long enough. What the store would not remove is tried again after a day. */
async function emptyTrash({ app: { db, blobs, log, clock }, lease, step }: Step): Promise<void> {
  const now = clock().getTime()
  const later = new Date(now + leastObjectAgeMs).toISOString()
  for (;;) {
    // A backup copies what its database names, which may be what was deleted since.
    if (await isHeld(db, clock().toISOString())) return
    const due = await dueTrash(db, new Date(now).toISOString(), page)
    if (due.length === 0) return
    // No location is given out twice, but a restored database may know again what was forgotten.
    const known = await store.knownLocations(db, locationsOf(due))
    if (known.size > 0) log.warn('contents in use were found in the trash, and stay', { contents: known.size })
    // A file has no row that could refuse a node which has stalled since it looked.
    lease.check()
    const left = new Set(await blobs.removeAll(locationsOf(due).filter((location) => !known.has(location))))
    if (left.size > 0) log.error('contents could not be removed from the store', { contents: left.size })
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
