// Background job that computes and applies retention plans in batches. Organizations take turns, and each batch is committed on
// its own.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Job } from '#job.ts'
import { type Plan, planStates } from './plans.model.ts'
import * as store from './plans.store.ts'
import { applySome, planSome } from './sweep.service.ts'

/** Most batches for one organization before the next organization has its turn. */
const slicesInTurn = 20
const forgottenAtOnce = 1000

export const sweepRetention: Job = {
  name: 'retention.sweep',
  everyMs: 60_000,
  runsOn: 'one node',
  wake: ({ retention }) => retention,
  async run(app, lease) {
    const sum = { slices: 0, deleted: 0, failed: 0, forgotten: 0 }
    const failed = new Set<string>()
    while (lease.holds()) {
      const organizations = (await store.busyOrganizations(app.db)).filter((one) => !failed.has(one))
      if (organizations.length === 0) break
      for (const organization of organizations) {
        const { slices, deleted, error } = await turnOf(app, lease, organization)
        sum.slices += slices
        sum.deleted += deleted
        if (error === undefined) continue
        // An error in one organization does not delay other organizations. The next run tries the failed organization again.
        app.log.error('retention plan failed', { organization, error })
        failed.add(organization)
        sum.failed++
      }
    }
    const now = app.clock().toISOString()
    sum.forgotten = await lease.inBatches((tx) => store.forgetEnded(tx, now, forgottenAtOnce))
    return sum
  },
}

type Turn = { slices: number; deleted: number; error: unknown }

/**
 * Runs some batches for one organization. Throws only if the lease is lost, for example because the server stops. Other errors
 * are in `error`.
 */
async function turnOf(app: App, lease: Lease, organization: string): Promise<Turn> {
  const turn: Turn = { slices: 0, deleted: 0, error: undefined }
  try {
    while (turn.slices < slicesInTurn && lease.holds()) {
      const plan = await store.nextOpen(app.db, organization)
      if (!plan) break
      turn.slices++
      turn.deleted += await workOn(app, lease, plan)
    }
  } catch (error) {
    if (!lease.holds()) throw error
    turn.error = error
  }
  return turn
}

async function workOn(app: App, lease: Lease, plan: Plan): Promise<number> {
  if (plan.state === planStates.APPLYING) return applySome({ app, lease }, plan)
  await planSome({ app, lease }, plan)
  return 0
}
