// Makes and applies plans of retention. Organisations take turns, and whatever was done stays done.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Duty } from '#duty.ts'
import { type Plan, planStates } from './plans.model.ts'
import * as store from './plans.store.ts'
import { applySome, planSome } from './sweep.service.ts'

/** How many slices one organisation has before the next one has its turn. */
const slicesInTurn = 20
const forgottenAtOnce = 1000

export const sweepRetention: Duty = {
  name: 'retention.sweep',
  everyMs: 60_000,
  runsOn: 'one node',
  wake: ({ retention }) => retention,
  async run(app, lease) {
    const sum = { slices: 0, deleted: 0, forgotten: 0 }
    while (lease.holds()) {
      const organizations = await store.busyOrganizations(app.db)
      if (organizations.length === 0) break
      for (const organization of organizations) {
        for (let slice = 0; slice < slicesInTurn && lease.holds(); slice++) {
          const plan = await store.nextOpen(app.db, organization)
          if (!plan) break
          sum.slices++
          sum.deleted += await workOn(app, lease, plan)
        }
      }
    }
    const now = app.clock().toISOString()
    sum.forgotten = await lease.inBatches((tx) => store.forgetEnded(tx, now, forgottenAtOnce))
    return sum
  },
}

async function workOn(app: App, lease: Lease, plan: Plan): Promise<number> {
  if (plan.state === planStates.APPLYING) return applySome({ app, lease }, plan)
  await planSome({ app, lease }, plan)
  return 0
}
