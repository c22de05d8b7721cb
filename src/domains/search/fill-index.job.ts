import type { Job } from '#job.ts'
import { fillSearch, stepBack } from './write-index.store.ts'

const rowsAtOnce = 1000
/** Rows that are read again, since the row with the higher number can be committed first. */
const rowsAgain = 1000

/**
 * Background job that queues rows of servers of an earlier release for the search index. Such servers run beside this one during
 * an upgrade.
 */
export const fillIndex: Job = {
  name: 'search.fill',
  everyMs: 600_000,
  runsOn: 'one node',
  async run({ db }, lease) {
    if (!db.shared) return { rows: 0 }
    await lease.tx((tx) => stepBack(tx, rowsAgain), { isolation: 'rowLocks' })
    return { rows: await lease.inBatches((tx) => fillSearch(tx, rowsAtOnce)) }
  },
}
