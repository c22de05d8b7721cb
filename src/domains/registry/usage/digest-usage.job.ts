import type { Tx } from '#db/sql.ts'
import type { Job } from '#job.ts'
import { keptDays, namedDays } from './digest-usage.model.ts'
import * as store from './digest-usage.store.ts'

/** Background job that writes the pull counts of this server. */
export const writeUsage: Job = {
  name: 'registry.usage',
  everyMs: 1000,
  runsOn: 'every node',
  run: async ({ usage }) => ({ rows: await usage.flush() }),
}

const dayMs = 24 * 60 * 60_000
const rowsAtOnce = 500

/**
 * Background job that deletes old pull counts. Earlier than that, it merges the counts of all callers of a day. It processes a
 * few digests at a time.
 */
export const sweepUsage: Job = {
  name: 'registry.usage.sweep',
  everyMs: dayMs,
  runsOn: 'one node',
  async run({ clock }, lease) {
    const today = clock().getTime()
    const before = (days: number) => new Date(today - days * dayMs).toISOString().slice(0, 10)
    let rows = 0
    let from: store.UsageRowKey | undefined = { repo: 0, digest: '' }
    const step = async (tx: Tx): Promise<number> => {
      if (!from) return 0
      const upTo = await store.usageRowAfter(tx, from, rowsAtOnce)
      const gone = await store.deleteBefore(tx, before(keptDays), from, upTo)
      const forgotten = await store.forgetLastPulls(tx, before(keptDays), from, upTo)
      const merged = await store.mergeCallers(tx, before(namedDays), from, upTo)
      // The counters change only after the commit, since the transaction may be repeated.
      tx.after(() => {
        rows += gone + forgotten + merged
        from = upTo
      })
      return 1
    }
    await lease.inBatches(step)
    return { rows }
  },
}
