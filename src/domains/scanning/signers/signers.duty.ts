// Ends the trust in signers until now, and tells of it.
import type { Duty } from '#duty.ts'
import { expireSigners } from './signers.service.ts'

const atOnce = 100

/** Twice in the half minute that it may take. */
export const expireSignersDuty: Duty = {
  name: 'vulnerabilities.signers',
  everyMs: 15_000,
  runsOn: 'one node',
  async run(app, lease) {
    const now = app.clock().toISOString()
    return { expired: await lease.inBatches((tx) => expireSigners(tx, app, now, atOnce)) }
  },
}
