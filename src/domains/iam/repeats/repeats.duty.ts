import type { Duty } from '#duty.ts'
import { sweepRequests } from './repeats.store.ts'

const batch = 500

/** Forgets requests that were named so that nobody carries them out twice, a day after they came. */
export const sweepRequestIds: Duty = {
  name: 'iam.request_ids.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ clock }, lease) {
    const now = clock().toISOString()
    return { requests: await lease.inBatches((tx) => sweepRequests(tx, now, batch)) }
  },
}
