// Collections as they are asked for and waited for, on whichever node. Which one runs them, `collect-blobs.duty.ts` says.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import { AppError, notFound } from '#lib/errors.ts'
import { type Collection, collectionStates, hasEnded } from './collection.model.ts'
import * as store from './collection.store.ts'

/** So many that have ended can still be asked about. */
const remembered = 100
/** How often to look for what another node has done. */
const lookMs = 200

/** Asks for a collection; with `dryRun` it only counts. One that would do the same and has not ended is joined. */
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

/** Answers when the collection has ended, or after `waitMs` as far as it has got. Throws NOT_FOUND, ABORTED when it failed. */
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
        throw new AppError('ABORTED', `the collection failed on node ${found.node}: ${found.problem}`)
      }
      if (hasEnded(found) || performance.now() >= until) return found
      await Promise.race([moved, sleep(lookMs, undefined, { signal }).catch(() => signal.throwIfAborted())])
    }
  } finally {
    stop()
  }
}
