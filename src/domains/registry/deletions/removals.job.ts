// Background job that removes the rows of large deleted repositories in batches. Each is a short transaction, so that other
// writers do not wait long.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Job } from '#job.ts'
import { rootOf } from '#lib/uid.ts'
import { inRepo } from '../blobs/blobs.store.ts'
import { type Removal, sliceSize } from '../repos/removals.model.ts'
import * as store from '../repos/removals.store.ts'
import { removings } from './removals.service.ts'

/** Most batches of one repository in a row. Then a repository of another organization follows. */
const batchesPerTurn = 100

export const removeRepos: Job = {
  name: 'repos.remove',
  everyMs: 60_000,
  runsOn: 'one node',
  wakeOn: ['insert repo_removals'],
  async run(app, lease) {
    let repos = 0
    for (;;) {
      // Reads the list again in each round, so that repositories deleted meanwhile are included.
      const firsts = firstOfEach(await store.openRemovals(app.db))
      if (firsts.length === 0) return { repos }
      for (const removal of firsts) if (await removeSome(app, lease, removal)) repos++
    }
  },
}

/** The oldest removal of each organization. */
function firstOfEach(removals: readonly Removal[]): Removal[] {
  const firsts = new Map<string, Removal>()
  for (const removal of removals) {
    const organization = rootOf(removal.uid)
    if (!firsts.has(organization)) firsts.set(organization, removal)
  }
  return [...firsts.values()]
}

/**
 * Removes batches of rows of one repository. Returns true if everything is removed. Finished batches are kept, so another server
 * can continue.
 */
async function removeSome(app: App, lease: Lease, removal: Removal): Promise<boolean> {
  let left = batchesPerTurn
  for (const removing of removings(app)) {
    await lease.inBatches(async (tx) => {
      const found = left > 0 ? await removing(tx, removal, sliceSize) : 0
      if (found > 0) left--
      return found
    }, inRepo)
    if (left === 0) return false
  }
  await lease.tx((tx) => store.endRemoval(tx, removal), inRepo)
  app.log.info('repo removed', { uid: removal.uid })
  return true
}
