import type { Call, Work } from '#app.ts'
import type { Db, Tx } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { addGroup, checkNewGroup, type NewGroup, requireGroup } from '#domains/iam/groups/groups.service.ts'
import { limitsOf, type QuotaLimits, requireCapacity } from '#domains/iam/groups/limits.service.ts'
import { listNodes } from '#domains/iam/groups/list-nodes.ts'
import { emit } from '#domains/outbox/emit.ts'
import {
  AppError,
  alreadyExists,
  type FieldViolation,
  failedPrecondition,
  found,
  invalid,
  permissionDenied,
} from '#lib/errors.ts'
import { applyPatch, checkFields, type Patch, snakeCase } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { inRepo, lockRepo, type PushTarget, processLockOf } from '../blobs/blobs.store.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import { pathIn } from './paths.service.ts'
import {
  adminFields,
  maxListed,
  type Repo,
  type RepoReadme,
  repoFields,
  repoType,
  toReadmeResource,
  toRepoResource,
} from './repos.model.ts'
import * as store from './repos.store.ts'
import { emptySync, type ResolvedSync, type SourceChange } from './sync-config.model.ts'
import { requireSyncTerms, withSource } from './synced-repos.service.ts'

export type { PushTarget }

export type NewRepo = Omit<Repo, 'uid' | 'createTime' | 'updateTime' | 'syncConfig'> & {
  readme?: string
  syncConfig?: Repo['syncConfig']
}
/** Repository with its readme, for a version of the API that has both in one message. */
export type FullRepo = Repo & { readme: string }

const admin = capabilityNumber('repo.internal.admin')
const update = capabilityNumber('repo.update')

export async function getRepo(call: Call, uid: string): Promise<Repo> {
  return found(await store.findRepo(call.app.db, uid), repoType, uid)
}

export async function listRepos(call: Call, query: ListQuery<store.RepoFilter>): Promise<Listed<Repo>> {
  return listNodes(call, query, store.repoList)
}

export async function createRepo(work: Work, parent: string, input: NewRepo): Promise<FullRepo> {
  await checkNewRepo(work, parent, input)
  await requireSyncTerms(work, parent, input.syncConfig)
  const repo = await work.app.db.tx((tx) => addRepo(tx, work, parent, input))
  work.log.info('repo created', { uid: repo.uid })
  return repo
}

/**
 * Repository that a push creates below an existing group. `folders` are the missing folders between the group and the repository.
 */
export type RepoBelow = { group: string; folders: readonly string[]; name: string }

/** Checks the new repository and its folders before the transaction that adds them. */
export async function checkRepoBelow(
  work: Work,
  { group, folders, name }: RepoBelow,
  checkFolder: typeof checkNewGroup = checkNewGroup,
): Promise<void> {
  let parent = group
  for (const folder of folders) {
    await checkFolder(work, parent, bareFolder(folder))
    parent = newUid(parent)
  }
  await checkNewRepo(work, parent, bareRepo(name))
}

/** Target of pushes to a repository that exists. */
export function atRepo(db: Db, repo: RepoRef): PushTarget {
  return {
    uid: repo.uid,
    repo,
    tx: (lock, push) =>
      db.tx((tx) => push(tx, async () => ((await lockRepo(tx, repo, lock)) ? repo : undefined)), {
        ...inRepo,
        // A push with an `alone` lock takes the lock first. Other pushes first find out whether they need the lock.
        ...(lock === 'alone' && { meets: processLockOf(repo.uid, lock) }),
      }),
  }
}

/**
 * Target of a push that creates its repository. If another request creates the repository first, `again` returns a new target.
 */
export function atNewRepo(work: Work, below: RepoBelow, again: () => Promise<PushTarget>): PushTarget {
  return {
    uid: below.group,
    repo: undefined,
    async tx(lock, push) {
      try {
        return await pushToNewRepo(work, below, push)
      } catch (error) {
        if (!(error instanceof AppError && error.code === 'ALREADY_EXISTS')) throw error
      }
      return (await again()).tx(lock, push)
    },
  }
}

/**
 * Runs the transaction of a push to a new repository, after the repository was checked. Calling `repo` creates the repository
 * with its folders. Throws ALREADY_EXISTS if another request has created it first.
 */
export async function pushToNewRepo<T>(
  work: Work,
  below: RepoBelow,
  push: (tx: Tx, repo: () => Promise<NewRepoRef>) => Promise<T>,
): Promise<T> {
  let made: { groups: string[]; repo: NewRepoRef } | undefined
  const result = await work.app.db.tx(async (tx) => {
    made = undefined
    return push(tx, async () => {
      made ??= await addRepoBelow(tx, work, below)
      return made.repo
    })
  })
  for (const uid of made?.groups ?? []) work.log.info('group created', { uid })
  if (made) work.log.info('repo created', { uid: made.repo.uid })
  return result
}

type NewRepoRef = RepoRef & { limits: QuotaLimits }

async function addRepoBelow(tx: Tx, work: Work, { group, folders, name }: RepoBelow) {
  const limits = await limitsOf(tx, work, rootOf(group))
  const groups: string[] = []
  for (const folder of folders) {
    groups.push((await addGroup(tx, work, groups.at(-1) ?? group, bareFolder(folder), limits)).uid)
  }
  const parent = groups.at(-1) ?? group
  const { uid } = await addRepo(tx, work, parent, bareRepo(name), limits)
  const { id, ledger } = (await store.findRepoRow(tx, { uid }))!
  const repo: NewRepoRef = { id, uid, ledger, group: parent, path: await pathIn(tx, parent, name), limits }
  return { groups, repo }
}

function bareFolder(name: string): NewGroup {
  return { name, description: '', verified: false, kind: 0 }
}

function bareRepo(name: string): NewRepo {
  return { name, description: '', catalogTier: 0, bundles: [], aliases: [], activeTags: [] }
}

async function checkNewRepo(work: Work, parent: string, { readme = '', ...input }: NewRepo): Promise<void> {
  const repo: Repo = { syncConfig: undefined, ...input, uid: '', createTime: '', updateTime: '' }
  checkAdmin(work, parent, repo)
  checkRepo(repo)
  checkReadme(work, parent, await checkMarkdown(readme), 'readme')
  if (repo.syncConfig) refuseReadmeOfCopy(readme, 'readme')
}

/** Adds a repository that was checked before. `known` are limits of the organization that were just read. */
async function addRepo(
  tx: Tx,
  work: Work,
  parent: string,
  { readme = '', ...input }: NewRepo,
  known?: QuotaLimits,
): Promise<FullRepo> {
  const times = { createTime: work.cause.now, updateTime: work.cause.now }
  const asked: Repo = { syncConfig: undefined, ...input, uid: newUid(parent), ...times }
  await requireGroup(tx, parent)
  const limits = known ?? (await limitsOf(tx, work, rootOf(parent)))
  if (limits.repositories < Number.POSITIVE_INFINITY) {
    requireCapacity(limits, 'repositories', await store.countRepos(tx, rootOf(parent)))
  }
  const { repo: created, settled } = await resolveSource(tx, work, asked)
  if (!(await store.insertRepo(tx, created))) {
    throw alreadyExists(repoType, input.name, 'a repo of the group has this name')
  }
  if (settled) await saveSync(tx, work, created.uid, settled)
  if (readme !== '') await store.setReadme(tx, created.uid, readme, created.createTime)
  const full: FullRepo = { ...created, readme }
  await emit(tx, work, 'registry.repo.created', { subject: created.uid, group: parent, resource: toRepoResource(full) })
  return full
}

/** Changes the fields named in `patch`. The name cannot be changed, since clients pull by it. */
export async function updateRepo(call: Call, uid: string, patch: Patch<Repo>): Promise<Repo> {
  await requireSyncTerms(call, uid, namesSync(patch) ? patch.value.syncConfig : undefined)
  const repo = await call.app.db.tx(async (tx) => {
    const before = found(await store.findRepo(tx, uid), repoType, uid)
    const patched = { ...applyPatch<Repo>(repoFields, before, patch), updateTime: call.now }
    checkAdmin(call, uid, patched, before)
    const after = await resolveAndSave(tx, call, before, patched, namesSync(patch))
    checkRepo(after)
    await store.patchRepo(tx, before, after)
    await emit(tx, call, 'registry.repo.updated', {
      subject: uid,
      resource: toRepoResource(after),
    })
    return after
  })
  call.log.info('repo updated', { uid, paths: patch.paths })
  return repo
}

/**
 * Replaces the readme and all fields that can be changed. If a caller who is not a catalog admin leaves catalog fields empty,
 * these fields keep their values.
 */
export async function replaceRepo(work: Work, uid: string, input: Required<NewRepo>): Promise<FullRepo> {
  const isAdmin = work.caller.rights.holds(uid, [admin])
  await requireSyncTerms(work, uid, input.syncConfig)
  const kept = isAdmin && !input.syncConfig ? [] : adminFields.filter((name) => isUnset(input[name]))
  const paths = Object.keys(repoFields).filter((name) => !kept.some((one) => one === name))
  const judgedReadme = await checkMarkdown(input.readme)
  const repo = await work.app.db.tx(async (tx) => {
    const before = found(await store.findRepo(tx, uid), repoType, uid)
    const patch = { paths: paths.map(snakeCase), value: input }
    const patched = { ...applyPatch<Repo>(repoFields, before, patch), updateTime: work.cause.now }
    checkAdmin(work, uid, patched, before)
    const after = await resolveAndSave(tx, work, before, patched, true)
    checkRepo(after)
    const earlier = await store.readmeOf(tx, uid)
    const keeps = input.readme === '' && (!isAdmin || after.syncConfig !== undefined)
    const readme = keeps ? earlier : input.readme
    if (readme !== earlier) {
      if (after.syncConfig) refuseReadmeOfCopy(readme, 'readme')
      checkReadme(work, uid, judgedReadme, 'readme')
      await store.setReadme(tx, uid, readme, work.cause.now)
    }
    await store.patchRepo(tx, before, after)
    const full: FullRepo = { ...after, readme }
    await emit(tx, work, 'registry.repo.updated', {
      subject: uid,
      resource: toRepoResource(full),
    })
    return full
  })
  work.log.info('repo replaced', { uid })
  return repo
}

/** Replaces the repository of this name, or creates it if there is none. Replacing also requires `repo.update`. */
export async function createOrReplaceRepo(work: Work, parent: string, input: Required<NewRepo>): Promise<FullRepo> {
  const replaced = await replaceNamed(work, parent, input)
  if (replaced) return replaced
  try {
    return await createRepo(work, parent, input)
  } catch (error) {
    // Another request has created the repository at the same time.
    const isThere = error instanceof AppError && error.code === 'ALREADY_EXISTS'
    const again = isThere ? await replaceNamed(work, parent, input) : undefined
    if (again) return again
    throw error
  }
}

async function replaceNamed(work: Work, parent: string, input: Required<NewRepo>): Promise<FullRepo | undefined> {
  const there = await store.findRepoRow(work.app.db, { group: parent, name: input.name })
  if (!there) return undefined
  if (!work.caller.rights.holds(there.uid, [update])) throw permissionDenied()
  return replaceRepo(work, there.uid, input)
}

/** Readme of a repository. The content is empty if there is none. */
export async function getRepoReadme(call: Call, uid: string): Promise<RepoReadme> {
  await getRepo(call, uid)
  return { uid, content: await store.readmeOf(call.app.db, uid) }
}

/** Changes the readme. Refuses Markdown that renders to unsafe HTML. */
export async function updateRepoReadme(call: Call, uid: string, patch: Patch<RepoReadme>): Promise<RepoReadme> {
  const changes = patch.paths.includes('content')
  const content = patch.value.content ?? ''
  if (changes) checkReadme(call, uid, await checkMarkdown(content), 'content')
  const readme = await call.app.db.tx(async (tx) => {
    const before = found(await store.findRepo(tx, uid), repoType, uid)
    if (changes && before.syncConfig) refuseReadmeOfCopy(content || ' ', 'content')
    if (changes) await store.setReadme(tx, uid, content, call.now)
    await store.patchRepo(tx, before, { ...before, updateTime: call.now })
    const after: RepoReadme = { uid, content: changes ? content : await store.readmeOf(tx, uid) }
    await emit(tx, call, 'registry.repo.updated', {
      subject: uid,
      resource: toReadmeResource(after),
    })
    return after
  })
  call.log.info('repo readme updated', { uid })
  return readme
}

const namesSync = ({ paths }: Patch<Repo>): boolean => paths.some((path) => path.split('.')[0] === 'sync_config')

/** Repository as it is stored. Its source was checked, and it has the fields of the source. */
async function resolveSource(tx: Tx, work: Work, asked: Repo, before?: Repo) {
  const { syncConfig, uid } = asked
  if (!syncConfig) return { repo: asked, settled: undefined }
  const settled = await resolveSync(tx, work, {
    repo: uid,
    before: before?.syncConfig,
    asked: { ...emptySync, ...syncConfig },
  })
  // Fields of the source are shown only to callers who may pull from it. For others, the background job copies them later.
  const source = settled.mayCopy ? await store.findRepo(tx, settled.config.source) : undefined
  const repo = withSource(asked, before, source)
  return { repo: { ...repo, syncConfig: settled.config }, settled }
}

async function resolveAndSave(tx: Tx, work: Work, before: Repo, asked: Repo, isNamed: boolean): Promise<Repo> {
  if (!isNamed) {
    if (before.syncConfig) withSource(asked, before, undefined)
    return asked
  }
  const { repo, settled } = await resolveSource(tx, work, asked, before)
  await saveSync(tx, work, asked.uid, settled)
  return repo
}

async function resolveSync(tx: Tx, work: Work, change: SourceChange): Promise<ResolvedSync> {
  for (const sourceChanging of work.app.hooks.sourceChanging) return sourceChanging(tx, work, change)
  throw new Error('no domain copies repositories')
}

async function saveSync(tx: Tx, { app, cause }: Work, repo: string, settled: ResolvedSync | undefined): Promise<void> {
  for (const sourceChanged of app.hooks.sourceChanged) await sourceChanged(tx, repo, settled, cause.now)
}

/** A copied repository has the readme of its source. */
function refuseReadmeOfCopy(readme: string, field: string): void {
  if (readme === '') return
  const description = 'the repository is a copy, so its readme comes from the source'
  throw failedPrecondition({ type: 'REPO_SYNCED', subject: field, description })
}

function checkRepo(repo: Repo): void {
  const lists = { bundles: repo.bundles, aliases: repo.aliases, active_tags: repo.activeTags }
  const tooLong = Object.entries(lists).filter(([, list]) => list.length > maxListed)
  const problems = tooLong.map(
    ([field]): FieldViolation => ({ field, description: `must have at most ${maxListed} entries` }),
  )
  checkFields<Repo>(repoFields, repo, problems)
}

function isUnset(value: unknown): boolean {
  return value === 0 || (Array.isArray(value) && value.length === 0)
}

function checkAdmin({ caller }: Work, parent: string, after: Repo, before?: Repo): void {
  const changed = adminFields.filter((name) => {
    return before ? JSON.stringify(before[name]) !== JSON.stringify(after[name]) : !isUnset(after[name])
  })
  if (changed.length > 0 && !caller.rights.holds(parent, [admin])) {
    throw permissionDenied(`only administrators of the catalog can set ${changed.map(snakeCase).join(', ')}`)
  }
}

/** Checks a readme. Call this before the transaction, since the first call loads the parser of Markdown and HTML. */
async function checkMarkdown(content: string): Promise<{ content: string; problem: string | undefined }> {
  return { content, problem: content === '' ? undefined : (await import('./readme.ts')).problemOfReadme(content) }
}

type Judged = Awaited<ReturnType<typeof checkMarkdown>>
function checkReadme({ caller }: Work, parent: string, { content, problem }: Judged, field: string): void {
  if (content === '') return
  if (problem) throw invalid({ field, description: problem })
  if (!caller.rights.holds(parent, [admin]))
    throw permissionDenied(`only administrators of the catalog can set ${field}`)
}
