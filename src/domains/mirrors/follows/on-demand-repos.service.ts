// Creates repositories for pulls of missing repositories. This needs an upstream of a group above that is set to create
// repositories and that has the image.
import type { App } from '#app.ts'
import { checkGroup } from '#domains/iam/groups/groups.service.ts'
import { emit } from '#domains/outbox/emit.ts'
import { followModes } from '#domains/registry/repo-ref.model.ts'
import { pathIn } from '#domains/registry/repos/paths.service.ts'
import { checkRepoBelow, pushToNewRepo, type RepoBelow } from '#domains/registry/repos/repos.service.ts'
import { AppError } from '#lib/errors.ts'
import { maxPathLength } from '#lib/oci-names.ts'
import { createYielder } from '#lib/scheduling/yielder.ts'
import { lineage, parentOf } from '#lib/uid.ts'
import { followerWork, singleFlight } from './follower.service.ts'
import {
  type Follow,
  freshMs,
  newProgress,
  toFollowResource,
  usualIntervalMs,
  usualStaleForMs,
} from './follows.model.ts'
import * as store from './follows.store.ts'
import { lookMs } from './pull-through.service.ts'
import { matchesNames } from './tag-patterns.ts'
import { type Upstream, upstreamPathPattern } from './upstreams.model.ts'
import { pathAt, withPassword } from './upstreams.service.ts'
import { findUpstream, upstreamsThatCreateRepos } from './upstreams.store.ts'

/** Pull from a repository that does not exist; `reference` is a tag or a digest. */
export type Missing = { below: RepoBelow; reference: string }

/**
 * Creates the repository as the mirroring service if an upstream of the groups above has the reference. Returns false if no such
 * upstream is set to create repositories, or if it lacks the reference. Throws UpstreamError if the upstream does not answer, and
 * RESOURCE_EXHAUSTED if a quota of the organization is reached.
 */
export async function makeFollowed(app: App, { below, reference }: Missing): Promise<boolean> {
  if (!(await canExist(app, below))) return false
  const source = await sourceFor(app, below)
  if (!source) return false
  const { upstream, path } = source
  const key = `${upstream.uid} ${upstream.updateTime} ${path} ${reference}`
  const { silent, flights } = app.follows
  if (silent.get(key, app.clock().getTime()) !== undefined) return false
  return singleFlight(flights, `repo ${key} ${below.group}`, async () => {
    const asked = await withPassword(app, upstream, path)
    const options = { timeoutMs: lookMs, patienceMs: lookMs }
    if (!(await app.upstreams.head(asked.upstream, asked.path, reference, options))) {
      silent.set(key, '', app.clock().getTime() + freshMs)
      return false
    }
    return createMirror(app, below, source)
  })
}

/** True if the repository can be created. The depth of groups and the characters of names are limited. */
async function canExist(app: App, below: RepoBelow): Promise<boolean> {
  try {
    await checkRepoBelow(followerWork(app), below, async (work, parent, folder) => checkGroup(work, folder, parent))
    return true
  } catch (error) {
    if (error instanceof AppError && error.code === 'INVALID_ARGUMENT') return false
    throw error
  }
}

type Source = { upstream: Upstream; path: string }

/** First upstream that allows the path, and the path at that upstream. */
async function sourceFor({ db }: App, { group, folders, name }: RepoBelow): Promise<Source | undefined> {
  const upstreams = await upstreamsThatCreateRepos(db, lineage(group))
  if (upstreams.length === 0) return undefined
  const names = (await pathIn(db, group, [...folders, name].join('/'))).split('/')
  const yielder = createYielder()
  for (const upstream of upstreams) {
    const path = names.slice(lineage(parentOf(upstream.uid)).length).join('/')
    const fits = upstreamPathPattern.test(path) && pathAt(upstream, path).length <= maxPathLength
    if (fits && (await matchesNames(upstream.allow, path, yielder))) return { upstream, path }
  }
  return undefined
}

async function createMirror(app: App, below: RepoBelow, { upstream, path }: Source): Promise<boolean> {
  const work = followerWork(app)
  const { now } = work.cause
  await app.terms.check(below.group, ...app.eventTable.methods('registry.repo.created'))
  if (below.folders.length > 0) await app.terms.check(below.group, ...app.eventTable.methods('iam.group.created'))
  try {
    return await pushToNewRepo(work, below, async (tx, repo) => {
      // The upstream may have been changed or deleted after it was asked.
      const still = await findUpstream(tx, upstream.uid)
      if (still?.updateTime !== upstream.updateTime) return false
      const { uid, group } = await repo()
      // A pull created the mirror. So there is no setter to whom tag protection rules could apply.
      const setter = ''
      const what = { repo: uid, upstream: upstream.uid, path, mode: followModes.onDemand, tags: [], platforms: [] }
      const times = { intervalMs: usualIntervalMs, staleForMs: usualStaleForMs, createTime: now, updateTime: now }
      const follow: Follow = { ...what, ...times, setter }
      await store.saveFollow(tx, follow, newProgress(now))
      const resource = toFollowResource((await store.findFollow(tx, uid))!)
      await emit(tx, work, 'control.registry.follow.updated', { subject: uid, group, resource })
      return true
    })
  } catch (error) {
    // Another server or a user has created the repository at the same time.
    if (error instanceof AppError && error.code === 'ALREADY_EXISTS') return true
    throw error
  }
}
