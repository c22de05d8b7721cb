// Takes away what is old or belongs to nobody any more, a little at a time, so that nobody waits for it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import * as store from './retention.store.ts'

const everyMs = 60 * 60 * 1000
const batch = 200
const pauseMs = 20
const day = 24 * 60 * 60 * 1000

export type Sweeps = { close(): Promise<void> }

/** Sweeps now, every hour, and whenever queues change by other means than routing. */
export function startSweeps(app: App): Sweeps {
  let sweeping: Promise<void> | undefined
  let closed = false
  const run = (): void => {
    sweeping ??= sweep(app, () => closed)
      .catch((error: unknown) => app.log.warn('old events could not be swept', { error }))
      .finally(() => {
        sweeping = undefined
      })
  }
  const timer = setInterval(run, everyMs)
  timer.unref()
  const stop = app.events.queued.subscribe(run)
  run()
  return {
    async close() {
      closed = true
      clearInterval(timer)
      stop()
      await sweeping
    },
  }
}

/** Events and deliveries past their time, and the deliveries of subscriptions that were deleted. */
export async function sweep({ db, config, clock }: App, stopped: () => boolean = () => false): Promise<void> {
  const before = new Date(clock().getTime() - config.eventRetentionDays * day).toISOString()
  const works: ((tx: Parameters<typeof store.sweepEvents>[0]) => Promise<number>)[] = [
    (tx) => store.sweepDeleted(tx, batch),
    (tx) => store.sweepDeliveries(tx, before, batch),
    (tx) => store.sweepEvents(tx, before, batch),
  ]
  for (const work of works) {
    while (!stopped() && (await db.tx(work, { isolation: 'rowLocks' })) > 0) await sleep(pauseMs)
  }
}
