// Takes away what a deleted repo had, in slices: each is a transaction of its own, which other writers need not wait for long.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Duty } from '#duty.ts'
import { inRepo } from '../blobs/blobs.store.ts'
import type { Removal } from './removals.model.ts'
import { slices } from './removals.service.ts'
import * as store from './removals.store.ts'

export const removeRepos: Duty = {
  name: 'repos.remove',
  everyMs: 60_000,
  runsOn: 'one node',
  wake: ({ removals }) => removals,
  async run(app, lease) {
    const removals = await store.openRemovals(app.db)
    for (const removal of removals) await remove(app, lease, removal)
    return { repos: removals.length }
  },
}

/** Whatever it has done stays done, so another node goes on where this one was. */
async function remove({ log }: App, lease: Lease, removal: Removal): Promise<void> {
  for (const slice of slices) await lease.inBatches((tx) => slice(tx, removal), inRepo)
  await lease.tx((tx) => store.endRemoval(tx, removal), inRepo)
  log.info('repo removed', { uid: removal.uid })
}
