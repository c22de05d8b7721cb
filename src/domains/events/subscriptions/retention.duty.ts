// Takes away what is old or belongs to nobody any more, a little at a time, so that nobody waits for it.
import type { Duty } from '#duty.ts'
import { sweepStreams } from './audience.store.ts'
import * as store from './retention.store.ts'

const batch = 200
const dayMs = 24 * 60 * 60 * 1000

/** Removes events and deliveries past their time. */
export const sweepEvents: Duty = {
  name: 'events.sweep',
  everyMs: 60 * 60 * 1000,
  runsOn: 'one node',
  async run({ config, clock }, lease) {
    const keptMs = config.eventRetentionDays * dayMs
    const now = clock()
    const before = new Date(now.getTime() - keptMs).toISOString()
    await lease.inBatches((tx) => sweepStreams(tx, now.toISOString()))
    return {
      deliveries: await lease.inBatches((tx) => store.sweepDeliveries(tx, before, batch)),
      events: await lease.inBatches((tx) => store.sweepEvents(tx, before, batch)),
    }
  },
}

/** Removes what waits for subscriptions that were deleted. */
export const sweepSubscriptions: Duty = {
  name: 'subscriptions.sweep',
  everyMs: 60_000,
  runsOn: 'one node',
  wake: ({ events }) => events.queued,
  run: async (_, lease) => ({ rows: await lease.inBatches((tx) => store.sweepDeleted(tx, batch)) }),
}
