// Ends what was accepted until now, so that it counts again, and tells of it.
import type { Duty } from '#duty.ts'
import { expireRisks } from './risks.service.ts'

const atOnce = 100

/** Twice in the half minute that it may take. */
export const expireRisksDuty: Duty = {
  name: 'vulnerabilities.risks',
  everyMs: 15_000,
  runsOn: 'one node',
  async run(app, lease) {
    const now = app.clock().toISOString()
    return { expired: await lease.inBatches((tx) => expireRisks(tx, app, now, atOnce)) }
  },
}
