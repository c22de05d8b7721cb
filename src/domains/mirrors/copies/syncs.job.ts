// Background job that copies repositories from others on this server. Each run continues where the last one ended, a hundred tags
// at a time. It first checks that the identity that configured the copy may still pull all of the source and push to the target.
import type { App, Work } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { noRights } from '#domains/iam/access/rights.ts'
import { boundBy } from '#domains/policy/pull-rules/bound-pulls.service.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { followSource } from '#domains/registry/repos/synced-repos.service.ts'
import type { Job } from '#job.ts'
import { ownCause } from '#lib/cause.ts'
import { AppError } from '#lib/errors.ts'
import { type SyncState, syncStates } from '../follows/sync-states.model.ts'
import { CopyEnded, type Copying, copyReferrers, copyRefused, copyTags } from './copies.service.ts'
import { mostRefused, type Sync, type SyncCursor } from './syncs.model.ts'
import { mayStillCopy, requireCopyTerms } from './syncs.service.ts'
import * as store from './syncs.store.ts'

const everyMs = 5_000
/** Delay before a complete or failed copy is checked again. */
const againMs = 60_000
/** Longest delay between the time of a change and its commit. Each run also reads changes of that period again. */
const overlapMs = 5 * 60_000
/** Interval at which all tags are compared, even if they have not changed. */
const fullMs = 24 * 3_600_000

/** Longest turn for the repositories of one organization. Then other organizations have their turn. */
const turnMs = 2000

export const copyRepos = createCopyJob(turnMs)

/**
 * Creates the job. Organizations take turns, and so do the repositories of one organization. Even a short turn copies something.
 */
export function createCopyJob(turnMs: number): Job {
  return {
    name: 'registry.sync',
    everyMs,
    runsOn: 'one node',
    async run(app, lease) {
      const sum = { tags: 0, manifests: 0, failed: 0 }
      const now = () => app.clock().toISOString()
      while (lease.holds()) {
        const organizations = await store.dueOrganizations(app.db, now())
        if (organizations.length === 0) break
        for (const organization of organizations) {
          const until = performance.now() + turnMs
          const turnIsOver = () => performance.now() >= until
          do {
            // Reads only the next copy, since the configuration of later ones may change meanwhile.
            const sync = await store.nextDue(app.db, organization, now())
            if (!sync) break
            const { tags, manifests, failed } = await runSync(app, lease, sync, turnIsOver)
            sum.tags += tags
            sum.manifests += manifests
            sum.failed += Number(failed)
          } while (!turnIsOver() && lease.holds())
        }
      }
      return sum
    },
  }
}

type Outcome = { tags: number; manifests: number; failed: boolean }
const nothing: Outcome = { tags: 0, manifests: 0, failed: false }

async function runSync(app: App, lease: Lease, sync: Sync, turnIsOver: () => boolean): Promise<Outcome> {
  const now = app.clock()
  const note = (state: SyncState, waitMs: number | undefined, cursor: SyncCursor = sync.cursor) => {
    const due = waitMs === undefined ? '' : new Date(now.getTime() + waitMs).toISOString()
    const progress = { state, now: now.toISOString(), due, cursor }
    return lease.tx((tx) => store.noteProgress(tx, sync, progress), { isolation: 'rowLocks', durability: 'later' })
  }
  const fail = async (reason: string, cursor?: SyncCursor): Promise<Outcome> => {
    if (sync.state !== syncStates.failed) app.log.warn('copy of a repository failed', { repo: sync.repo, reason })
    await note(syncStates.failed, againMs, cursor)
    return { ...nothing, failed: true }
  }
  if (sync.expirationTime <= now.toISOString()) {
    await note(syncStates.unknown, undefined)
    return nothing
  }
  const from = await findRepoRow(app.db, { uid: sync.source })
  const to = await findRepoRow(app.db, { uid: sync.repo })
  if (!to) {
    await note(syncStates.unknown, undefined)
    return nothing
  }
  if (!from) return fail('the source was deleted')
  if (!(await mayStillCopy(app, sync)))
    return fail('the identity that set up the copy can no longer pull the source and push the copy')
  const work = createWork(app, sync)
  const bound = await boundBy(work, from)
  if (bound && bound.enforced.length > 0)
    return fail('a cooldown policy at the source applies to the identity that set up the copy')
  try {
    await requireCopyTerms(app, sync.repo)
    const uniqueTags = await followSource(work, lease, sync)
    return await copySome({ work, lease, sync, from, to, uniqueTags, turnIsOver }, note)
  } catch (error) {
    if (!lease.holds()) throw error
    // The source of the copy has changed. The next run reads the new configuration.
    if (error instanceof CopyEnded) return nothing
    if (!(error instanceof AppError))
      app.log.error('copy of a repository failed with an internal error', { repo: sync.repo, error })
    return fail(error instanceof AppError ? error.message : 'internal error')
  }
}

type Note = (state: SyncState, waitMs: number | undefined, cursor: SyncCursor) => Promise<void>

async function copySome(copying: Copying, note: Note): Promise<Outcome> {
  const { sync } = copying
  const { now } = copying.work.cause
  const cursor = sync.state === syncStates.inProgress ? sync.cursor : findStart(sync.cursor, now)
  if (sync.state !== syncStates.inProgress && sync.state !== syncStates.unknown) {
    await note(syncStates.inProgress, 0, cursor)
  }
  const tags = await copyTags(copying, cursor.tags)
  // If new images were copied, their referrers are searched from the beginning. Referrers may have been pushed long before the
  // image was copied.
  const referrers = tags.copied.manifests > 0 ? fromStart : cursor.referrers
  const refused = [...new Set([...(cursor.refused ?? []), ...tags.refused])].slice(0, mostRefused)
  const next = { ...cursor, tags: tags.after, referrers, refused }
  if (!tags.done) {
    await note(syncStates.inProgress, 0, next)
    return { ...tags.copied, failed: false }
  }
  const { after, done, copied } = await copyReferrers(copying, referrers)
  const ended = { ...next, referrers: done && copied.manifests > 0 ? fromStart : after }
  const sum = { tags: tags.copied.tags, manifests: tags.copied.manifests + copied.manifests, failed: false }
  if (!done) {
    await note(syncStates.inProgress, 0, ended)
    return sum
  }
  return finishRound(copying, note, ended, sum)
}

/** Tries refused tags again. If tags are still refused, the round has failed, although everything else is copied. */
async function finishRound(copying: Copying, note: Note, cursor: SyncCursor, before: Outcome): Promise<Outcome> {
  const { work, sync } = copying
  const { refused = [] } = cursor
  const again = refused.length === 0 ? { copied: nothing, refused: [] } : await copyRefused(copying, refused)
  const failed = again.refused.length > 0
  if (failed && again.refused.join() !== sync.cursor.refused?.join()) {
    work.app.log.warn('tag protection rules block tags of a copy', { repo: sync.repo, tags: again.refused })
  }
  await note(failed ? syncStates.failed : syncStates.unknown, againMs, { ...cursor, refused: again.refused })
  return {
    tags: before.tags + again.copied.tags,
    manifests: before.manifests + again.copied.manifests,
    failed,
  }
}

const fromStart: SyncCursor['referrers'] = { time: '', digest: '' }

/** Start position of a run: shortly before the end of the last run. Once a day, a run starts from the beginning. */
function findStart({ tags, referrers, fullTime, refused = [] }: SyncCursor, now: string): SyncCursor {
  if (fullTime === '' || Date.parse(now) - Date.parse(fullTime) > fullMs) {
    return { tags: undefined, referrers: fromStart, fullTime: now }
  }
  const earlier = new Date(Date.parse(now) - overlapMs).toISOString()
  return {
    fullTime,
    refused,
    tags: tags && tags.value > earlier ? { value: earlier, uid: '' } : tags,
    referrers: referrers.time > earlier ? { time: earlier, digest: '' } : referrers,
  }
}

/** Work in the name of the identity that configured the copy. The permissions of the identity were checked before. */
function createWork(app: App, { setter, operator }: Sync): Work {
  return { app, caller: { uid: setter, operator, rights: noRights }, cause: ownCause(app.clock, setter), log: app.log }
}
