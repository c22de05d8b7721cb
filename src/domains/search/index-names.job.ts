import type { Lease } from '#db/leases.ts'
import type { Db } from '#db/sql.ts'
import type { Job } from '#job.ts'
import { addNames, type DueList, isAnyQueued, namesInList, nextDue, noteIndexed } from './index-packages.store.ts'
import { addPackages } from './parts.store.ts'
import { indexQueued } from './write-index.store.ts'

const rowsAtOnce = 100
const namesAtOnce = 200

/** Isolation in which the database keeps no note of what was read. So the index never fails the transactions of requests. */
const asJob = { isolation: 'rowLocks', durability: 'later' } as const

/**
 * Background job that updates the search index: first for all rows in the queue, then with the packages of one list, and so on.
 * Organizations with package lists take turns. Nothing is lost in a crash, since rows leave the queue in the transaction that adds
 * them to the index.
 */
export const indexNames: Job = {
  name: 'search.index',
  // Other servers of the database do not wake this one.
  everyMs: 1000,
  runsOn: 'one node',
  wakeOn: ['insert search_queue'],
  async run({ db }, lease) {
    let packages = 0
    for (let organization = 0; ; ) {
      if (await isAnyQueued(db)) await lease.inBatches((tx) => indexQueued(tx, rowsAtOnce), asJob)
      lease.check()
      const due = (await nextDue(db, organization)) ?? (organization > 0 ? await nextDue(db, 0) : undefined)
      // Names are not counted, since each change of a name would be a line of the log.
      if (!due) return { packages }
      packages += await indexSome(db, lease, due)
      organization = due.organization
    }
  },
}

/** Adds the next packages of a list. Returns the number of names that are new in the organization. */
async function indexSome(db: Db, lease: Lease, due: DueList): Promise<number> {
  const { organization } = due
  const some = await namesInList(db, due, namesAtOnce)
  const distinct = [...new Set(some.map(({ name }) => name))]
  return lease.tx(async (tx) => {
    const added = await addNames(tx, organization, distinct)
    await addPackages(tx, organization, added)
    await noteIndexed(tx, due, { after: some.at(-1)?.id ?? due.after, isDone: some.length < namesAtOnce })
    return added.length
  }, asJob)
}
