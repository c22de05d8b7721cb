import type { Tx } from '#db/sql.ts'
import type { Duty } from '#duty.ts'
import { keptDays, namedDays } from './digest-usage.model.ts'
import * as store from './digest-usage.store.ts'

/** Writes who has pulled what. Each node writes what it has served. */
export const writeUsage: Duty = {
  name: 'registry.usage',
  everyMs: 1000,
  runsOn: 'every node',
  run: async ({ usage }) => ({ rows: await usage.flush() }),
}

const dayMs = 24 * 60 * 60_000
const rowsAtOnce = 500

/** Forgets old counts, and who they are of sooner than that, a few digests at a time. */
export const sweepUsage: Duty = {
  name: 'registry.usage.sweep',
  everyMs: dayMs,
  runsOn: 'one node',
  async run({ clock }, lease) {
    const today = clock().getTime()
    const before = (days: number) => new Date(today - days * dayMs).toISOString().slice(0, 10)
    let rows = 0
    let from: store.Place | undefined = { repo: 0, digest: '' }
    const step = async (tx: Tx): Promise<number> => {
      if (!from) return 0
      const upTo = await store.placeAfter(tx, from, rowsAtOnce)
      const gone = await store.deleteBefore(tx, before(keptDays), from, upTo)
      const forgotten = await store.forgetLastPulls(tx, before(keptDays), from, upTo)
      const merged = await store.mergeCallers(tx, before(namedDays), from, upTo)
      // Not before the commit, since it may be tried again.
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
