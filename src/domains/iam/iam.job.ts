import type { Job } from '#job.ts'
import { ownCause } from '#lib/cause.ts'
import { operatorUid } from '#lib/uid.ts'
import { keptSeconds } from './push-tokens/push-tokens.model.ts'
import { sweepPushTokens } from './push-tokens/push-tokens.store.ts'
import { sweepRequests } from './repeats/repeats.store.ts'
import { sweepGrants } from './sessions/own-grants.store.ts'
import { maxWaiting, rememberedSeconds } from './sessions/sessions.model.ts'
import { after, endSomeUntrusted } from './sessions/sessions.service.ts'
import { sweepSessions } from './sessions/sessions.store.ts'
import { sweepSignIns } from './sessions/sign-ins.store.ts'

/** Writes the times at which identities were last used. Each server writes those of its own requests. */
export const writeLastSeen: Job = {
  name: 'identities.seen',
  everyMs: 30_000,
  runsOn: 'every node',
  run: async ({ lastSeen }) => ({ identities: await lastSeen.flush() }),
}

/** Creates and deletes signing keys by their age. A new key is published for a day before it signs tokens. */
export const rotateKeys: Job = {
  name: 'keys.rotate',
  everyMs: 60_000,
  runsOn: 'one node',
  run: async ({ keyring }, lease) => ({ keys: await keyring.rotate(lease.tx) }),
}

/** Reads the signing keys from the database, since another server may have changed them. */
export const readKeys: Job = {
  name: 'keys.read',
  everyMs: 60_000,
  runsOn: 'every node',
  run: async ({ keyring }) => ({ keys: await keyring.refresh() }),
}

const batch = 500

/** Ends sessions whose provider was removed from the settings, with an event for each session. */
export const endUntrustedSessions: Job = {
  name: 'iam.sessions.untrusted',
  everyMs: 10 * 60_000,
  runsOn: 'one node',
  async run(app, lease) {
    const now = app.clock().toISOString()
    const work = { app, cause: { ...ownCause(app.clock, operatorUid), now } }
    let sessions = 0
    let behind: string | undefined = ''
    while (behind !== undefined) {
      lease.check()
      const { ended, next } = await lease.tx((tx) => endSomeUntrusted(tx, work, behind!))
      sessions += ended
      behind = next
    }
    return { sessions }
  },
}

/** Deletes ended sessions, unfinished sign-ins, and other expired rows about sign-ins. */
export const sweepSessionsJob: Job = {
  name: 'iam.sessions.sweep',
  everyMs: 60_000,
  runsOn: 'one node',
  async run({ clock }, lease) {
    const now = clock().toISOString()
    const sessions = await lease.inBatches((tx) => sweepSessions(tx, now, batch))
    const forgotten = after(now, -rememberedSeconds)
    const grants = await lease.inBatches((tx) => sweepGrants(tx, { now, forgotten }, batch))
    return { sessions, grants, others: await lease.inBatches((tx) => sweepSignIns(tx, now, batch, maxWaiting)) }
  },
}

/** Deletes push tokens that expired a month ago. */
export const sweepPushTokensJob: Job = {
  name: 'iam.push_tokens.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ clock }, lease) {
    const before = after(clock().toISOString(), -keptSeconds)
    return { pushTokens: await lease.inBatches((tx) => sweepPushTokens(tx, before, batch)) }
  },
}

/** Deletes request IDs after a day. From then on, a repeated request is processed again. */
export const sweepRequestIds: Job = {
  name: 'iam.request_ids.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ clock }, lease) {
    const now = clock().toISOString()
    return { requests: await lease.inBatches((tx) => sweepRequests(tx, now, batch)) }
  },
}
