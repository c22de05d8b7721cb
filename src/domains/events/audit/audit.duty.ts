import * as store from '#domains/outbox/audit.store.ts'
import type { Duty } from '#duty.ts'

const dayMs = 24 * 60 * 60 * 1000
/** Small, so that other writers do not wait for the sweep. */
const batch = 100

/** Forgets the entries that are older than the configuration says; none when they are kept for good. */
export const sweepAuditLog: Duty = {
  name: 'audit.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ config, clock }, lease) {
    if (config.auditDays === 0) return {}
    const before = new Date(clock().getTime() - config.auditDays * dayMs).toISOString()
    return { entries: await lease.inBatches((tx) => store.deleteBefore(tx, before, batch), {}) }
  },
}
