import type { Duty } from '#duty.ts'
import { maxKept, maxKeptInAll } from './refusals.model.ts'
import * as store from './refusals.store.ts'

/** Writes what the registry has refused. Each node writes its own. */
export const writeRefusals: Duty = {
  name: 'events.refusals',
  everyMs: 1000,
  runsOn: 'every node',
  run: async ({ refusals }) => ({ rows: await refusals.flush() }),
}

const dayMs = 24 * 60 * 60_000
const batch = 200

/** Forgets the old ones, and where there are too many in all those of whoever has most. */
export const sweepRefusals: Duty = {
  name: 'events.refusals.sweep',
  everyMs: 60_000,
  runsOn: 'one node',
  async run({ config, clock }, lease) {
    const now = clock().getTime()
    const before = new Date(now - config.eventRetentionDays * dayMs).toISOString()
    let rows = await lease.inBatches((tx) => store.deleteBefore(tx, before, batch))
    rows += await lease.inBatches(async (tx) => {
      const most = (await store.countAll(tx)) > maxKeptInAll ? await store.largest(tx) : undefined
      if (!most) return 0
      const half = Math.floor(Math.min(most.total, maxKept) / 2)
      const outside = await store.keepLatest(tx, most.organisation, true, half)
      return outside + (await store.keepLatest(tx, most.organisation, false, half))
    })
    return { rows }
  },
}
