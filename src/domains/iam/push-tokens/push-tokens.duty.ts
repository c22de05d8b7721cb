import type { Duty } from '#duty.ts'
import { after } from '../sessions/sessions.service.ts'
import { keptSeconds } from './push-tokens.model.ts'
import { sweepPushTokens } from './push-tokens.store.ts'

const batch = 500

/** Forgets push tokens a while after they have expired. */
export const sweepPushTokensDuty: Duty = {
  name: 'iam.push_tokens.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ clock }, lease) {
    const before = after(clock().toISOString(), -keptSeconds)
    return { pushTokens: await lease.inBatches((tx) => sweepPushTokens(tx, before, batch)) }
  },
}
