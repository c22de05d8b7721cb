import type { Duty } from '#duty.ts'
import { ownCause } from '#lib/cause.ts'
import { operatorUid } from '#lib/uid.ts'
import { sweepGrants } from './own-grants.store.ts'
import { maxWaiting, rememberedSeconds } from './sessions.model.ts'
import { after, endSomeUntrusted } from './sessions.service.ts'
import { sweepSessions } from './sessions.store.ts'
import { sweepSignIns } from './sign-ins.store.ts'

const batch = 500

/** Ends the sessions of providers that the settings have lost, and tells so. */
export const endUntrustedSessions: Duty = {
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

/** Forgets sessions that have ended, sign-ins that nobody has finished, and what else has expired around them. */
export const sweepSessionsDuty: Duty = {
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
