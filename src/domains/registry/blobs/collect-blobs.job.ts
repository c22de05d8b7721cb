// Garbage collection of blobs. Each collection is a row in the database, so any server can request one and read its progress. The
// server with the lease runs it.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Job, JobStatus } from '#job.ts'
import { collect } from './collect-blobs.ts'
import { type Collected, type Collection, collectionStates, nothingCollected } from './collection.model.ts'
import { requestCollection } from './collection.service.ts'
import * as store from './collection.store.ts'

const hourMs = 3600_000
const rowLocks = { isolation: 'rowLocks' } as const

/** Requests a collection every hour, or four times in each grace period if that is more often. */
export const scheduleCollections: Job = {
  name: 'blobs.schedule',
  everyMs: ({ config }) => Math.min(hourMs, config.blobGraceSeconds * 250),
  runsOn: 'one node',
  async run(app) {
    await requestCollection(app, false, true)
    return {}
  },
}

/** Runs requested collections, and continues collections of a server that has stopped. */
export const collectBlobs: Job = {
  name: 'blobs.collect',
  everyMs: ({ db }) => (db.shared ? 1000 : 60_000),
  runsOn: 'one node',
  wake: ({ collections }) => collections.asked,
  async run(app, lease) {
    const sum = { ...nothingCollected }
    for (const collection of await store.openCollections(app.db)) {
      const done = await runCollection(app, lease, collection)
      if (!collection.dryRun) for (const [key, count] of Object.entries(done)) sum[key as keyof typeof sum] += count
    }
    return sum
  },
}

async function runCollection(
  app: App,
  lease: Lease,
  { id, dryRun, scheduled, ...before }: Collection,
): Promise<JobStatus> {
  const { fence, node } = lease
  // A continued collection keeps its counts, since content that is removed already cannot be counted again. A dry run counts from
  // zero.
  const goesOn = before.state === collectionStates.running && !dryRun
  const earlier = goesOn ? before.collected : nothingCollected
  const collected = { ...earlier }
  const now = () => app.clock().toISOString()
  const start = { ...before, id, dryRun, scheduled, collected }
  await lease.tx((tx) => store.beginCollection(tx, start, { node, fence, now: now() }), rowLocks)
  let noted = sumOf(collected)
  const step = async (): Promise<void> => {
    lease.check()
    if (sumOf(collected) === noted) return
    noted = sumOf(collected)
    await lease.tx((tx) => store.noteProgress(tx, id, fence, collected), { ...rowLocks, durability: 'later' })
    app.collections.moved.notify()
  }
  const end = async (problem: string): Promise<void> => {
    await lease.tx((tx) => store.endCollection(tx, id, fence, { problem, now: now(), collected }), rowLocks)
    app.collections.moved.notify()
  }
  try {
    await collect({ app, lease, dryRun, scheduled, collected, step })
  } catch (error) {
    // Without the lease, the collection is not marked as failed: the next owner of the lease continues it.
    if (lease.holds()) await end(error instanceof Error ? error.message : String(error))
    throw error
  }
  await end('')
  return Object.fromEntries(
    Object.entries(collected).map(([key, count]) => [key, count - earlier[key as keyof typeof earlier]]),
  )
}

const sumOf = (collected: Collected): number => Object.values(collected).reduce((sum, count) => sum + count, 0)
