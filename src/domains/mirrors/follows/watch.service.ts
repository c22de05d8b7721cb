// Checks the tags of a mirror with one HEAD request for each, and lists all tags if there are patterns. A changed digest becomes
// a row in the tag history. The time of the previous check is stored too: the tag was changed between the two checks.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { inRepo } from '#domains/registry/blobs/blobs.store.ts'
import { followModes } from '#domains/registry/repo-ref.model.ts'
import { findRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { subjectOfTag } from '#domains/registry/tags/tags.model.ts'
import { tagsNamed } from '#domains/registry/tags/tags.store.ts'
import type { Upstream as Asked, Pointed } from '#lib/registries/registry-client.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import {
  type FollowedTag,
  type FollowProgress,
  type FollowStatus,
  maxFollowedTags,
  maxListedTags,
  missedAgainMs,
  missesOfDeletion,
} from './follows.model.ts'
import * as store from './follows.store.ts'
import { queueHistories } from './histories.store.ts'
import { syncStates } from './sync-states.model.ts'
import { type MatchTag, namedTags, storedPatternProblem, tagLimits, tagMatcher } from './tag-patterns.ts'
import { FollowEnded, recordMove, requireFollow } from './upstream-moves.service.ts'
import { withPassword } from './upstreams.service.ts'
import { findUpstream } from './upstreams.store.ts'

/** A tag list that was read in part. `left` has the remaining pages, and `unmatched` has the rest of the last page. */
type Listing = {
  of: FollowStatus
  began: string
  left: AsyncIterator<string[]>
  unmatched: string[]
  found: Set<string>
  tookMs: number
  /** Error that ended the list before its last page. */
  cut?: UpstreamError
}
/** Unfinished tag lists by repository. A later turn continues them. */
export type Listings = Map<string, Listing>

/** One mirror to check. `turnIsOver` is true if other mirrors have to be checked. */
export type UpstreamCheck = { app: App; lease: Lease; follow: FollowStatus; listings: Listings; turnIsOver(): boolean }
export type UpstreamCheckResult = { looks: number; moves: number; failed: boolean }

const tagsAtOnce = 50
/** Longest wait for the rate limit of a host during a turn. */
const waitWithinTurnMs = 1000
const firstRetryMs = 60_000
const longestRetryMs = 3_600_000
/** Time limit for reading a whole tag list. */
const longestListMs = 120_000
/** Most unfinished tag lists in memory. */
const mostListings = 100

const write = { isolation: 'rowLocks', durability: 'later' } as const

/**
 * Checks the tags of a mirror that are due, until the turn is over, and schedules the next check. Throws only if the lease is
 * lost or for internal errors.
 */
export async function checkUpstream(looking: UpstreamCheck): Promise<UpstreamCheckResult> {
  const { app, lease, follow } = looking
  const looked: UpstreamCheckResult = { looks: 0, moves: 0, failed: false }
  const progress: FollowProgress = { ...follow }
  let failure: UpstreamError | undefined
  try {
    const repo = await findRepoRow(app.db, { uid: follow.repo })
    const upstream = await findUpstream(app.db, follow.upstream)
    if (!repo || !upstream) return looked
    await lease.tx((tx) => store.recordCheckStart(tx, follow, isoOf(app)), write)
    const asking = { ...looking, repo, ...(await withPassword(app, upstream, follow.path)) }
    const isListDue = follow.listDue <= isoOf(app)
    const unlisted = isListDue ? await startRound(asking, progress).then(() => undefined, ofOne) : undefined
    if (unlisted) progress.listDue = later(isoOf(app), retryMs(follow.failures + 1))
    failure = (await checkTags(asking, looked)) ?? unlisted
  } catch (error) {
    if (!lease.holds() || !(error instanceof UpstreamError || error instanceof FollowEnded)) throw error
    if (error instanceof FollowEnded) return looked
    failure = error
  }
  const patient = failure?.reason === 'paced' || failure?.reason === 'paused'
  if (failure && !patient && follow.state !== syncStates.failed) {
    app.log.warn('upstream could not be checked', {
      repo: follow.repo,
      reason: failure.message,
      cause: failure.cause,
    })
  }
  looked.failed = failure !== undefined && !patient
  await saveTurn(looking, progress, failure, patient)
  return looked
}

/**
 * Records that a mirror could not be checked because of an internal error. The mirror is tried again later, so that it does not
 * delay others.
 */
export async function recordFailedCheck(looking: UpstreamCheck): Promise<void> {
  await saveTurn(looking, looking.follow, new UpstreamError('unavailable'), false)
}

/** True if the failure is about the tag list or one tag only. Checks of other tags may still succeed. */
function isOfOne({ reason }: UpstreamError): boolean {
  return ['malformed', 'lost-page', 'too-large', 'guarded'].includes(reason)
}

function ofOne(error: unknown): UpstreamError {
  if (error instanceof UpstreamError && isOfOne(error)) return error
  throw error
}

const isoOf = ({ clock }: App): string => clock().toISOString()
const later = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString()
const retryMs = (failures: number): number => Math.min(firstRetryMs * 2 ** Math.min(failures - 1, 10), longestRetryMs)

async function saveTurn(
  { app, lease, follow, listings }: UpstreamCheck,
  progress: FollowProgress,
  failure: UpstreamError | undefined,
  patient: boolean,
): Promise<void> {
  const now = isoOf(app)
  const next = await store.nextTagDue(app.db, follow.repo)
  // A mirror with an unfinished list is due again now. Mirrors that became due earlier come first.
  const listDue = listings.has(follow.repo) ? now : progress.listDue
  const due = next === '' || listDue < next ? listDue : next
  const failures = failure && !patient ? progress.failures + 1 : failure ? progress.failures : 0
  // The failure of one tag, or of the list, does not delay the other tags.
  const waitMs =
    failure && !isOfOne(failure) ? Math.max(failure.waitMs ?? 0, patient ? 0 : retryMs(failures)) : undefined
  const isFailed = patient ? follow.state === syncStates.failed : failure !== undefined
  const patch = {
    ...progress,
    now,
    failures,
    state: isFailed ? syncStates.failed : syncStates.unknown,
    problem: failure && !patient ? failure.message : patient ? progress.problem : '',
    dueTime: waitMs === undefined ? due : later(now, waitMs),
  }
  await lease.tx((tx) => store.noteFollowProgress(tx, follow, patch), write)
}

type TagCheck = UpstreamCheck & { repo: RepoRow; upstream: Asked; path: string }

/** Updates the set of watched tags from the tag list of the upstream. */
async function startRound(asking: TagCheck, progress: FollowProgress): Promise<void> {
  const { app, lease, follow } = asking
  const now = isoOf(app)
  if (follow.mode === followModes.onDemand) {
    // Mirrors on demand watch only tags that were pulled, so they need no list.
    progress.listDue = later(now, follow.intervalMs)
    return
  }
  const problem = storedPatternProblem('tags', follow.tags, tagLimits)
  if (problem) app.log.warn('pattern of a mirror exceeds the limits', { repo: follow.repo, problem })
  const matches = tagMatcher(follow.tags)
  const wanted = new Set(namedTags(follow.tags))
  const listed: Pick<Listing, 'began' | 'found' | 'cut'> | undefined = matches
    ? await listedTags(asking, matches)
    : { began: now, found: new Set() }
  if (!listed) return
  for (const tag of listed.found) wanted.add(tag)
  if (wanted.size > maxFollowedTags) throw new UpstreamError('too-large')
  const known = new Set(await store.followedTagNames(app.db, follow.repo))
  const fresh = [...wanted].filter((tag) => !known.has(tag))
  // Cosign tags were fetched together with an image. They stay watched, although no pattern matches them.
  const cameAlong = (tag: string) => follow.mode === followModes.full && subjectOfTag(tag) !== undefined
  const dropped: string[] = []
  for (const tag of known) {
    // If a page could not be read, a missing tag may be on that page.
    if (listed.cut) break
    if (!wanted.has(tag) && !cameAlong(tag) && (await matches?.(tag)) !== true) dropped.push(tag)
  }
  lease.check()
  // Tags that the list no longer has stay watched until they count as deleted. So the limit includes them.
  if (known.size - dropped.length + fresh.length > 2 * maxFollowedTags) throw new UpstreamError('too-large')
  await lease.tx(async (tx) => {
    await requireFollow(tx, follow)
    await store.dropFollowedTags(tx, follow.repo, dropped)
    // The previous list did not have these tags. So its time counts as their last check.
    await store.addFollowedTags(tx, follow.repo, fresh, { checkedTime: progress.listTime, now })
  }, inRepo)
  if (listed.cut) throw listed.cut
  progress.listTime = listed.began
  progress.listDue = later(now, follow.intervalMs)
}

/**
 * Reads pages of the tag list until the turn is over, and matches at least one tag. Returns undefined if tags are left for the
 * next turn.
 */
async function listedTags(asking: TagCheck, matches: MatchTag): Promise<Listing | undefined> {
  const { lease, follow, listings, turnIsOver } = asking
  const listing = listingOf(asking)
  listings.delete(follow.repo)
  for (;;) {
    const began = performance.now()
    if (listing.unmatched.length === 0) {
      const page = await listing.left.next().catch((error: unknown) => {
        if (!(error instanceof UpstreamError) || error.reason !== 'lost-page') throw error
        listing.cut = error
        return { done: true, value: undefined } as const
      })
      lease.check()
      if (page.done) return listing
      listing.unmatched = page.value.reverse()
    }
    // Matching may take longer than the turn. The next turn continues with the rest of the page.
    for (let tag = listing.unmatched.pop(); tag !== undefined; tag = listing.unmatched.pop()) {
      if (await matches(tag)) listing.found.add(tag)
      if (turnIsOver()) break
    }
    lease.check()
    listing.tookMs += performance.now() - began
    if (listing.found.size > maxFollowedTags || listing.tookMs > longestListMs) throw new UpstreamError('too-large')
    if (!turnIsOver() || listings.size >= mostListings) continue
    listings.set(follow.repo, listing)
    return undefined
  }
}

/** The unfinished list of the mirror. Starts a new list if there is none, or if the configuration has changed. */
function listingOf({ app, lease, upstream, path, follow, listings }: TagCheck): Listing {
  const begun = listings.get(follow.repo)
  if (begun?.of.updateTime === follow.updateTime) return begun
  const pages = app.upstreams.tags(upstream, path, maxListedTags, { signal: lease.signal })
  return {
    of: follow,
    began: isoOf(app),
    left: pages[Symbol.asyncIterator](),
    unmatched: [],
    found: new Set(),
    tookMs: 0,
  }
}

/**
 * Checks tags until the turn is over. Returns the last failure. A failed tag is postponed. If a failure concerns all tags, the
 * turn ends.
 */
async function checkTags(asking: TagCheck, looked: UpstreamCheckResult): Promise<UpstreamError | undefined> {
  const { app, lease, follow, turnIsOver } = asking
  let failure: UpstreamError | undefined
  while (lease.holds()) {
    const due = await store.dueTags(app.db, follow.repo, isoOf(app), tagsAtOnce)
    if (due.length === 0) return failure
    const names = due.map(({ tag }) => tag)
    const here = new Map((await tagsNamed(app.db, asking.repo.id, names)).map(({ name, digest }) => [name, digest]))
    const same: string[] = []
    let firstSent = ''
    let over = false
    for (const tag of due) {
      const sent = isoOf(app)
      const outcome = await checkTag(asking, tag, here.get(tag.tag) ?? '', sent)
      if (outcome instanceof UpstreamError) {
        failure = outcome
        over = await postpone(asking, tag, outcome)
      } else if (outcome === 'same') {
        same.push(tag.tag)
        firstSent ||= sent
      } else looked.moves += outcome
      if (!(outcome instanceof UpstreamError) || outcome.reason === 'guarded') looked.looks++
      over ||= turnIsOver() || !lease.holds()
      if (over) break
    }
    if (same.length > 0) {
      const checked = { checkedTime: firstSent, dueTime: later(firstSent, follow.intervalMs) }
      const first = due.filter(({ tag, checkedTime }) => checkedTime === '' && same.includes(tag)).map(({ tag }) => tag)
      await lease.tx(
        async (tx) => {
          await store.noteChecked(tx, follow.repo, same, checked)
          // This mirror has not checked these tags before. They may have been mirrored earlier and have changed since, so their
          // history is requested.
          await queueHistories(tx, follow.repo, first, firstSent)
        },
        { isolation: 'rowLocks' },
      )
      if (first.length > 0) app.follows.histories.notify()
    }
    if (over) return failure
  }
  return failure
}

/** Checks one tag. Returns the number of assignments, or the error of the check or of its record. */
async function checkTag(asking: TagCheck, tag: FollowedTag, before: string, sent: string) {
  try {
    const seen = await headOf(asking, tag.tag)
    if (seen && seen.digest === before) return 'same'
    return await noteDigest(asking, tag, before, seen, sent)
  } catch (error) {
    if (error instanceof UpstreamError) return error
    throw error
  }
}

async function headOf({ app, lease, upstream, path, turnIsOver }: TagCheck, tag: string): Promise<Pointed> {
  for (;;) {
    try {
      return await app.upstreams.head(upstream, path, tag, { signal: lease.signal })
    } catch (error) {
      const waitMs = error instanceof UpstreamError && error.reason === 'paced' ? (error.waitMs ?? 0) : Infinity
      if (waitMs > waitWithinTurnMs || turnIsOver()) throw error
      await sleep(waitMs, undefined, { signal: lease.signal })
    }
  }
}

/** Delays the next check of a failed tag. Returns true if checks of all other tags would fail too. */
async function postpone({ app, lease, follow }: TagCheck, { tag, missed }: FollowedTag, failure: UpstreamError) {
  const { reason } = failure
  if (reason === 'paced' || reason === 'paused') return true
  // The tag is due after the others, so that a tag that always fails does not block them.
  const dueTime = later(isoOf(app), Math.min(follow.intervalMs, retryMs(follow.failures + 1)))
  await lease.tx((tx) => store.noteMissed(tx, follow.repo, tag, missed, dueTime), { isolation: 'rowLocks' })
  return !isOfOne(failure)
}

/** Records a digest that differs from our tag history. Returns the number of changed tags. */
async function noteDigest(
  asking: TagCheck,
  { tag, checkedTime, missed }: FollowedTag,
  before: string,
  seen: Pointed,
  sent: string,
): Promise<number> {
  const { app, lease, follow } = asking
  const now = isoOf(app)
  const dueTime = later(sent, follow.intervalMs)
  const move = { tag, now, sent, dueTime, checkedBefore: checkedTime }
  const recording = { app, tx: lease.tx, follow, path: asking.path }
  if (seen) return recordMove(recording, { ...move, digest: seen.digest })
  if (before === '') {
    // The upstream lacks the tag, and our tag history does too. A tag that only a pattern matched is dropped: the list finds it
    // again if it is created.
    const isNamed = namedTags(follow.tags).includes(tag)
    await lease.tx(async (tx) => {
      if (isNamed) await store.noteChecked(tx, follow.repo, [tag], { checkedTime: sent, dueTime })
      else await store.dropFollowedTags(tx, follow.repo, [tag])
    }, inRepo)
    return 0
  }
  if (missed + 1 < missesOfDeletion) {
    const again = later(sent, Math.min(missedAgainMs, follow.intervalMs))
    await lease.tx((tx) => store.noteMissed(tx, follow.repo, tag, missed + 1, again), { isolation: 'rowLocks' })
    return 0
  }
  return recordMove(recording, { ...move, digest: '' })
}
