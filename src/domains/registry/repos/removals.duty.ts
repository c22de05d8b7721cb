// Takes away what a deleted repo had, in slices: each is a transaction of its own, which other writers need not wait for long.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Duty } from '#duty.ts'
import { rootOf } from '#lib/uid.ts'
import { inRepo } from '../blobs/blobs.store.ts'
import type { Removal } from './removals.model.ts'
import { slices } from './removals.service.ts'
import * as store from './removals.store.ts'

/** So many slices of a repo that found something, and then it is the turn of another organisation. */
const slicesPerTurn = 100

export const removeRepos: Duty = {
  name: 'repos.remove',
  everyMs: 60_000,
  runsOn: 'one node',
  wake: ({ removals }) => removals,
  async run(app, lease) {
    let repos = 0
    for (;;) {
      // What was deleted meanwhile is among them.
      const firsts = firstOfEach(await store.openRemovals(app.db))
      if (firsts.length === 0) return { repos }
      for (const removal of firsts) if (await removeSome(app, lease, removal)) repos++
    }
  },
}

/** The oldest one of each organisation. */
function firstOfEach(removals: readonly Removal[]): Removal[] {
  const firsts = new Map<string, Removal>()
  for (const removal of removals) {
    const organisation = rootOf(removal.uid)
    if (!firsts.has(organisation)) firsts.set(organisation, removal)
  }
  return [...firsts.values()]
}

/** Whether all of it is gone now. Whatever was done stays done, so another node goes on where this one was. */
async function removeSome({ log }: App, lease: Lease, removal: Removal): Promise<boolean> {
  let left = slicesPerTurn
  for (const slice of slices) {
    await lease.inBatches(async (tx) => {
      const found = left > 0 ? await slice(tx, removal) : 0
      if (found > 0) left--
      return found
    }, inRepo)
    if (left === 0) return false
  }
  await lease.tx((tx) => store.endRemoval(tx, removal), inRepo)
  log.info('repo removed', { uid: removal.uid })
  return true
}
