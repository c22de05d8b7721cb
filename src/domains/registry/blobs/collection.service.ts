// Requests collections and waits for them, on any server. `collect-blobs.job.ts` runs the collections.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import { AppError, notFound } from '#lib/errors.ts'
import { type Collection, collectionStates, hasEnded } from './collection.model.ts'
import * as store from './collection.store.ts'

/** Number of finished collections that are kept for requests about them. */
const remembered = 100
/** Interval for checking the progress of a collection on another server. */
const lookMs = 200

/**
 * Requests a collection and returns its id. With `dryRun`, the collection only counts. If an unfinished collection of the same
 * kind exists, returns the id of that collection.
 */
export async function requestCollection(
  { db, clock, collections }: App,
  dryRun: boolean,
  scheduled = false,
): Promise<string> {
  const id = await db.tx(async (tx) => {
    const same = (await store.openCollections(tx)).find((one) => one.dryRun === dryRun && one.scheduled === scheduled)
    if (same) return same.id
    const fresh = randomUUID()
    await store.insertCollection(tx, { id: fresh, dryRun, scheduled, now: clock().toISOString() })
    await store.forgetCollections(tx, remembered)
    return fresh
  })
  collections.asked.notify()
  return id
}

/**
 * Waits for a collection. Returns the collection when it has ended, or its progress after `waitMs`. Throws NOT_FOUND if there is
 * no such collection, and ABORTED if the collection failed.
 */
export async function waitForCollection(
  app: App,
  id: string,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
): Promise<Collection> {
  const until = performance.now() + waitMs
  let wake: (value?: unknown) => void = () => {}
  const stop = app.collections.moved.subscribe(() => wake())
  try {
    for (;;) {
      const moved = new Promise((resolve) => {
        wake = resolve
      })
      const found = await store.findCollection(app.db, id)
      if (!found) throw notFound('registry.pinfold.dev/Collection', id)
      if (found.state === collectionStates.failed) {
        throw new AppError('ABORTED', `the garbage collection failed on node ${found.node}: ${found.problem}`)
      }
      if (hasEnded(found) || performance.now() >= until) return found
      await Promise.race([moved, sleep(lookMs, undefined, { signal }).catch(() => signal.throwIfAborted())])
    }
  } finally {
    stop()
  }
}
