// Configuration and status of mirrors.
import type { Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { requireNoTagProtection } from '#domains/policy/retention/retention-locks.service.ts'
import { inRepo } from '#domains/registry/blobs/blobs.store.ts'
import { type FollowMode, followModes } from '#domains/registry/repo-ref.model.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { findRepo, lockRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import {
  busy,
  type FieldViolation,
  failedPrecondition,
  found,
  invalid,
  notFound,
  permissionDenied,
  refuseIfAny,
} from '#lib/errors.ts'
import { type Page, toListed } from '#lib/lists/paging.ts'
import { maxPathLength } from '#lib/oci-names.ts'
import { isAtOrBelow, parentOf } from '#lib/uid.ts'
import { forgetFetches, queueTags } from './fetches.store.ts'
import {
  bringsContent,
  checkedAgainMs,
  type Follow,
  type FollowStatus,
  followType,
  longestIntervalMs,
  longestStaleForMs,
  maxPlatforms,
  maxTagPatterns,
  newProgress,
  platformPattern,
  shortestIntervalMs,
  toFollowResource,
  usualIntervalMs,
  usualStaleForMs,
  withCurrentState,
} from './follows.model.ts'
import * as store from './follows.store.ts'
import { forgetHistories } from './histories.store.ts'
import { matchesNames, patternProblems, tagLimits } from './tag-patterns.ts'
import { upstreamPathPattern } from './upstreams.model.ts'
import { pathAt, requireUpstream } from './upstreams.service.ts'
import { findUpstream } from './upstreams.store.ts'

const settingsUpdate = [capabilityNumber('registry.settings.update')]

/** Mirror in a request. An undefined time means the default. */
export type FollowInput = {
  upstream: string
  path: string
  mode: FollowMode
  tags: string[]
  platforms: string[]
  intervalMs: number | undefined
  staleForMs: number | undefined
}

export async function getFollow(call: Call, repo: string): Promise<FollowStatus> {
  return withCurrentState(found(await store.findFollow(call.app.db, repo), followType, repo), call.now)
}

/** A page of the mirrors in a group and below it. */
export async function listFollows(call: Call, group: string, page: Page) {
  const { db } = call.app
  const rows = await store.followsBelow(db, group, page)
  return toListed(
    call,
    page,
    rows.map((row) => ({ ...withCurrentState(row, call.now), uid: row.repo })),
    await store.countFollowsBelow(db, group),
  )
}

/** Makes the repository a mirror, or changes the mirror. If only patterns or times change, its progress is kept. */
export async function followRepo(call: Call, repo: string, input: FollowInput): Promise<FollowStatus> {
  checkFollow(input, (await store.findFollowWithoutCounts(call.app.db, repo))?.tags)
  const allows = await readAllowed(call, input)
  const { intervalMs = usualIntervalMs, staleForMs = usualStaleForMs, ...asked } = input
  const saved = await call.app.db.tx(async (tx) => {
    const row = await requireFollowable(tx, call, repo, { ...input, allows })
    const before = await store.findFollow(tx, repo)
    const isSame = before?.upstream === asked.upstream && before.path === asked.path
    if (!isSame) await requireNoTagProtection(tx, call, row)
    // With new patterns, the next list starts without an earlier time. Tags that match only a new pattern may have existed for
    // long.
    const listTime = isSame && JSON.stringify(before.tags) === JSON.stringify(asked.tags) ? before.listTime : ''
    const createTime = isSame ? before.createTime : call.now
    const setter = call.caller.uid
    const follow: Follow = { ...asked, repo, intervalMs, staleForMs, setter, createTime, updateTime: call.now }
    if (!isSame) await store.forgetTags(tx, repo)
    if (!isSame) await forgetHistories(tx, repo)
    if (!isSame || !bringsContent(follow.mode)) await forgetFetches(tx, repo)
    await store.saveFollow(tx, follow, { ...newProgress(call.now), listTime })
    if (follow.mode === followModes.full) {
      const brought = before?.mode === followModes.full && JSON.stringify(before.platforms)
      await queueTags(tx, row, call.now, brought !== JSON.stringify(follow.platforms))
    }
    const after = (await store.findFollow(tx, repo))!
    const event = { subject: repo, resource: toFollowResource(after) }
    await emit(tx, call, 'control.registry.follow.updated', event)
    return after
  }, inRepo)
  call.app.follows.due.notify()
  call.app.follows.fetches.notify()
  call.log.info('mirror configured', { repo, upstream: asked.upstream })
  return saved
}

/** Requests a check of all tags of a mirror. Does nothing if the last request is less than a minute old. */
export async function checkNow(call: Call, repo: string): Promise<FollowStatus> {
  const before = new Date(Date.parse(call.now) - checkedAgainMs).toISOString()
  const { follow, isDue } = await call.app.db.tx(async (tx) => {
    found(await store.findFollow(tx, repo), followType, repo)
    const isDue = await store.makeTagsDue(tx, repo, call.now, before)
    return { follow: withCurrentState((await store.findFollow(tx, repo))!, call.now), isDue }
  })
  if (isDue) call.app.follows.due.notify()
  return follow
}

/** Turns a mirror into an ordinary repository, which keeps its content. */
export async function unfollowRepo(call: Call, repo: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    await lockRepoRow(tx, repo, 'alone')
    if (!(await store.deleteFollow(tx, repo))) throw notFound(followType, repo)
    await emitDeleted(tx, call, 'control.registry.follow.deleted', repo)
  }, inRepo)
  call.log.info('mirror ended', { repo })
}

/** Throws FAILED_PRECONDITION if the repository is a mirror, since its tags come from the upstream. */
export async function requireOwnTags(reader: Reader, repo: string): Promise<void> {
  if (await store.findFollowWithoutCounts(reader, repo)) throw createMirrorError(repo)
}

function createMirrorError(repo: string) {
  const help = 'end the mirror first: pinfold mirrors delete'
  const description = `the repository is a mirror, so its tags come from the upstream; ${help}`
  return failedPrecondition({ type: 'REPO_FOLLOWED', subject: repo, description })
}

/**
 * Result of matching a path against the patterns of an upstream. Computed before the transaction, since matching lets other work
 * run.
 */
type Allows = { allow: string; isAllowed: boolean }

async function readAllowed({ app, caller }: Call, { upstream: uid, path }: FollowInput): Promise<Allows | undefined> {
  const upstream = caller.rights.holds(uid, settingsUpdate) ? await findUpstream(app.db, uid) : undefined
  if (!upstream) return undefined
  return { allow: JSON.stringify(upstream.allow), isAllowed: await matchesNames(upstream.allow, path) }
}

/**
 * Checks that the caller may mirror from the upstream. A mirror gets everything that the upstream's account can read, so
 * permission is checked before existence.
 */
async function requireFollowable(
  tx: Tx,
  { caller }: Call,
  repo: string,
  { upstream: uid, path, allows }: FollowInput & { allows: Allows | undefined },
): Promise<RepoRow> {
  if (!caller.rights.holds(uid, settingsUpdate)) throw permissionDenied()
  const upstream = await requireUpstream(tx, uid)
  const row = found(await lockRepoRow(tx, repo, 'alone'), repoType, repo)
  if (!isAtOrBelow(repo, parentOf(uid))) {
    throw invalid({
      field: 'upstream_uid',
      description: 'must be an upstream of the group of the repository, or of a group above it',
    })
  }
  if (allows?.allow !== JSON.stringify(upstream.allow))
    throw busy('the upstream was changed at the same time; try again')
  if (!allows.isAllowed) {
    throw invalid({
      field: 'path',
      description: 'is not allowed at this upstream; its field allow has the allowed paths',
    })
  }
  if (pathAt(upstream, path).length > maxPathLength) {
    throw invalid({
      field: 'path',
      description: `must be at most ${maxPathLength} characters long, together with the prefix of the upstream`,
    })
  }
  if ((await findRepo(tx, repo))?.syncConfig) {
    const description = 'the repository is a copy of another one on this server, so it cannot be a mirror'
    throw failedPrecondition({ type: 'REPO_SYNCED', subject: repo, description })
  }
  return row
}

/**
 * Checks the fields of a mirror. Unchanged patterns are not checked, since patterns from before the limits were introduced may
 * exceed them.
 */
function checkFollow(input: FollowInput, before?: readonly string[]): void {
  const { upstream, path, tags, platforms, mode, intervalMs = usualIntervalMs, staleForMs = 0 } = input
  const isSame = JSON.stringify(tags) === JSON.stringify(before)
  const problems: FieldViolation[] = isSame
    ? []
    : patternProblems('tags', tags, { most: maxTagPatterns, limits: tagLimits })
  if (upstream === '') problems.push({ field: 'upstream_uid', description: 'is required' })
  if (!upstreamPathPattern.test(path)) {
    problems.push({ field: 'path', description: `path must match "${upstreamPathPattern.source}"` })
  }
  if (intervalMs < shortestIntervalMs || intervalMs > longestIntervalMs) {
    problems.push({ field: 'interval', description: 'must be between five minutes and seven days' })
  }
  if (staleForMs < 0 || staleForMs > longestStaleForMs) {
    problems.push({ field: 'stale_for', description: 'must be at most ten years' })
  }
  if (platforms.length > maxPlatforms) {
    problems.push({ field: 'platforms', description: `must have at most ${maxPlatforms} entries` })
  } else if (!platforms.every((one) => platformPattern.test(one))) {
    problems.push({ field: 'platforms', description: `must each match "${platformPattern.source}"` })
  } else if (platforms.length > 0 && mode !== followModes.full) {
    problems.push({ field: 'platforms', description: 'is only allowed with MODE_FULL' })
  }
  refuseIfAny(problems)
}
