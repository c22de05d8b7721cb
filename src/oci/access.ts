// Permission checks of the registry. Each request is checked before data of the repository is read.
import type { EventTable } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import type { TagRights } from '#domains/registry/pushes/pushes.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import type { Found } from '#domains/registry/repos/repos.model.ts'
import { atNewRepo, atRepo, checkRepoBelow, type PushTarget } from '#domains/registry/repos/repos.service.ts'
import { freeTags, isFree } from '#domains/registry/tags/tag-history.service.ts'
import { isRepoPath, isTagName } from '#lib/oci-names.ts'
import { top } from '#lib/uid.ts'
import { catalogScope, challenge } from './challenge.ts'
import { denied, OciError } from './errors.ts'
import { makeFollowed } from './mirrors.ts'
import { pathOf, type Visit } from './visit.ts'

const toNumbers = (...names: string[]): readonly number[] => names.map(capabilityNumber)
const createRequirement = (token: 'pull' | 'push' | 'delete', ...names: string[]) => ({
  needs: toNumbers(...names),
  names,
  token,
})

/** Requirements of each action: capabilities on the repository (behavior 9.3), and the action in the scope of the token. */
const actions = {
  'manifest.read': createRequirement('pull', 'manifest.list', 'tag.list'),
  'blob.read': createRequirement('pull', 'repo.blobs.get'),
  'referrers.read': createRequirement('pull', 'referrers.list'),
  'tags.read': createRequirement('pull', 'tag.list'),
  'history.read': createRequirement('pull', 'tag.list'),
  push: createRequirement('push', 'manifest.create'),
  'manifest.delete': createRequirement('delete', 'manifest.delete'),
  'blob.delete': createRequirement('delete', 'manifest.delete'),
  'tag.delete': createRequirement('delete', 'tag.delete'),
} as const
export type Action = keyof typeof actions
export type TokenAction = (typeof actions)[Action]['token']

const tagCreate = toNumbers('tag.create')
const tagUpdate = toNumbers('tag.update')
const creation = { folder: toNumbers('groups.create'), repo: toNumbers('repo.create') }

/**
 * Repository of the request, after the permission check. Throws DENIED without permission, whether or not the repository exists.
 * Throws NAME_UNKNOWN if the repository is missing. Throws UNAUTHORIZED with a challenge if a token with more scopes would be
 * enough.
 */
export async function allow(visit: Visit, action: Action, what: What = {}): Promise<RepoRef> {
  const found = await authorize(visit, action, what)
  const repo = found.repo ?? (action === 'manifest.read' ? await createMirrorFor(visit, found, what) : undefined)
  if (!repo) throw createUnknownRepo(visit)
  if (actions[action].token !== 'pull') refuseMirror(repo)
  return repo
}

/** Target of a push. `mayTag` is whether the caller is allowed to create and move tags there. */
export type Target = PushTarget & { mayTag: TagRights }

const noTags: TagRights = { create: false, move: false }

/**
 * Checks a push, once for the whole request. Throws like `allow`. A missing repository is an error only if the caller is not
 * allowed to create it. If `setsTags` is set, also checks the terms for setting tags, and returns the tag rights in `mayTag`.
 */
export async function allowPush(visit: Visit, { setsTags = false } = {}): Promise<Target> {
  const found = await authorize(visit, 'push', {})
  if (found.repo) refuseMirror(found.repo)
  const target = await findTarget(visit, found)
  if (!setsTags) return { ...target, mayTag: noTags }
  const { rights } = visit.call.caller
  const mayTag = { create: rights.holds(target.uid, tagCreate), move: rights.holds(target.uid, tagUpdate) }
  // Without tag rights, terms are not checked, since the push will be refused because of its tags.
  if (mayTag.create || mayTag.move) await requireTerms(visit, target.uid, 'registry.tag.created')
  return { ...target, mayTag }
}

async function findTarget(visit: Visit, found: Found): Promise<PushTarget> {
  if (found.repo) return atRepo(visit.registry.app.db, found.repo)
  await checkCreation(visit, found)
  return atNewRepo(visit.call, found, async () => findTarget(visit, await findPath(visit)))
}

/** Throws UNSUPPORTED for a mirror. Mirrors are read-only, since their content comes from the upstream. */
function refuseMirror({ follow, path }: RepoRef): void {
  if (follow === undefined) return
  const help = `push to the upstream, or end the mirror: pinfold mirrors delete ${path}`
  throw new OciError('UNSUPPORTED', `the repository is a mirror, so it is read-only; ${help}`)
}

type What = { tag?: string; digest?: string }

/**
 * Creates a missing repository as a mirror, if an upstream of a group above has the image. Returns undefined if not. In a view,
 * nothing is created, since views serve only stored content.
 */
async function createMirrorFor(visit: Visit, below: Missing, { tag, digest }: What): Promise<RepoRef | undefined> {
  const reference = digest ?? (tag !== undefined && isTagName(tag) ? tag : undefined)
  if (visit.view || below.group === '' || reference === undefined) return undefined
  return (await makeFollowed(visit, { below, reference })) ? (await findPath(visit)).repo : undefined
}

/** Looks up the path and checks the permission for an action. Throws like `allow` if the action is refused. */
async function authorize(visit: Visit, action: Action, what: What): Promise<Found> {
  const { needs, token } = actions[action]
  const found = await findPath(visit)
  if (!(await hasPermission(visit, found, needs, action, what))) {
    if (visit.anonymous && !(found.repo === undefined && isPublic(visit))) throw challenge(visit, token)
    if (!isPublic(visit)) throw createDenial(visit, scopeOf(found), actions[action].names)
    throw found.repo ? createDenial(visit, scopeOf(found), actions[action].names) : createUnknownRepo(visit)
  }
  // The caller has the permission, but the token lacks the action. The challenge lets the client request another token.
  if (!isCoveredByToken(visit, token)) throw challenge(visit, token, 'insufficient_scope')
  return found
}

const grantors = 'an owner of the organization can grant it'

/**
 * DENIED error for an action. Only members see which capabilities they lack, so the error does not tell others whether the
 * repository exists.
 */
function createDenial(visit: Visit, scope: string, names: readonly string[]): OciError {
  if (!isMember(visit, scope)) return denied()
  const token = visit.call.caller.token?.narrowed ? ', or your token does not include it' : ''
  return denied(
    `you do not have the capability ${listMissing(visit, scope, names)} for this repository${token}; ${grantors}`,
  )
}

function listMissing({ call: { caller } }: Visit, scope: string, names: readonly string[]): string {
  return names.filter((name) => !caller.rights.holds(scope, toNumbers(name))).join(', ')
}

/** True if the caller is allowed to push to this repository or group. */
export function mayPush(visit: Visit, scope: string): boolean {
  return visit.call.caller.rights.holds(scope, actions.push.needs)
}

/** Throws DENIED if terms apply to the deletion of tags and are not accepted. Deleting a manifest deletes its tags too. */
export async function requireTagDeletionTerms(visit: Visit, repo: RepoRef): Promise<void> {
  await requireTerms(visit, repo.uid, 'registry.tag.deleted')
}

/** True if the caller can read or push in this repository or group. Access that public images give to everyone does not count. */
function isMember({ call: { caller } }: Visit, scope: string): boolean {
  const some = ['manifest.read', 'blob.read', 'tags.read', 'push'] as const
  return some.some((action) => caller.rights.holds(scope, actions[action].needs))
}

/** True if the caller has access to a public image, but only to its free tags. Then `tags/list` shows only free tags. */
export function seesOnlyFreeTags(visit: Visit, repo: RepoRef): boolean {
  return !visit.call.caller.rights.holds(repo.uid, actions['tags.read'].needs)
}

/** Actions among `pull`, `push` and `delete` that the caller is now allowed to perform at the path. */
export async function actionsAt(visit: Visit): Promise<TokenAction[]> {
  const found = await findPath(visit)
  const { rights } = visit.call.caller
  const may = (action: Action) => rights.holds(scopeOf(found), actions[action].needs)
  const able: TokenAction[] = []
  if (may('manifest.read') || may('blob.read') || may('tags.read') || isPublic(visit)) able.push('pull')
  if (may('push') && (found.repo || canCreate(visit, found))) able.push('push')
  if (may('manifest.delete') || may('tag.delete')) able.push('delete')
  return able
}

/** True if the path is in the public organization, from which anyone can pull free tags. */
export function isPublic({ name, registry }: Visit): boolean {
  return name.slice(0, name.indexOf('/')) === registry.app.config.publicOrg
}

async function findPath(visit: Visit): Promise<Found> {
  const path = pathOf(visit)
  if (!isRepoPath(path)) {
    const rule =
      'it must be ORG/NAME or ORG/FOLDER/NAME, with lower-case letters, digits, ".", "_" and "-" in each part'
    throw new OciError('NAME_INVALID', `the name of the repository is invalid: ${rule}`)
  }
  const found = await visit.registry.app.paths.find(path)
  visit.seen = { path, found }
  return found
}

/**
 * Repository or group at the path, and whether the caller is a member. `group` is the lowest group of the path that exists, or
 * empty. Reuses the look-up of the request if it was of the same path.
 */
export async function lookUpPath(visit: Visit) {
  const found = visit.seen?.path === pathOf(visit) ? visit.seen.found : await findPath(visit)
  const group = found.repo ? found.repo.group : found.group
  return { repo: found.repo, group, member: isMember(visit, found.repo?.uid ?? group) }
}

/** Resource on which permissions are checked. For a missing repository, it is the lowest group of the path that exists. */
function scopeOf(found: Found): string {
  return found.repo ? found.repo.uid : found.group || top
}

async function hasPermission(
  visit: Visit,
  found: Found,
  needs: readonly number[],
  action: Action,
  { tag, digest }: What,
): Promise<boolean> {
  if (visit.call.caller.rights.holds(scopeOf(found), needs)) return true
  if (!found.repo || !isPublic(visit)) return false
  if (action === 'tags.read') return true
  if (action === 'history.read') return freeTags.includes(tag ?? '')
  if (action !== 'manifest.read' && action !== 'blob.read') return false
  if (tag !== undefined) return freeTags.includes(tag)
  return digest !== undefined && isFree(visit.registry.app.db, found.repo, digest)
}

/**
 * True if the token includes the action on the repository. A token of the token endpoint is limited to its scopes. A token of the
 * exchange is not limited to repositories.
 */
function isCoveredByToken(visit: Visit, action: TokenAction): boolean {
  const { access } = visit
  return (
    access === undefined ||
    access.some((one) => one.type === undefined && one.name === pathOf(visit) && one.actions.includes(action))
  )
}

const repoList = toNumbers('repo.list')

/**
 * Groups and repositories in which the caller is allowed to list repositories; none is below another. Throws UNAUTHORIZED if
 * another token would be enough.
 */
export function listable(visit: Visit): readonly string[] {
  const { access, anonymous } = visit
  if (anonymous) throw challenge(visit, undefined, undefined, [catalogScope])
  const covered = access === undefined || access.some(({ type, name }) => type === 'registry' && name === 'catalog')
  if (!covered) throw challenge(visit, undefined, 'insufficient_scope', [catalogScope])
  return visit.call.caller.rights.roots(repoList)
}

function createUnknownRepo(visit: Visit): OciError {
  return new OciError('NAME_UNKNOWN', 'the repository does not exist; check its name', { detail: { name: visit.name } })
}

/** Error for a push to a missing organization. Only the operator can get it, since all other callers lack permission there. */
function createUnknownOrganization(visit: Visit): OciError {
  const name = pathOf(visit).split('/')[0]!
  return denied(`the organization ${name} does not exist; to create it: pinfold orgs create ${name}`)
}

type Missing = Found & { repo?: undefined }

function canCreate({ call: { caller } }: Visit, { group, folders }: Missing): boolean {
  if (group === '') return false
  return (
    caller.rights.holds(group, creation.repo) && (folders.length === 0 || caller.rights.holds(group, creation.folder))
  )
}

/** Checks that the caller is allowed to create the missing repository, by the same rules as the management API. */
async function checkCreation(visit: Visit, missing: Missing): Promise<void> {
  if (missing.group === '') throw createUnknownOrganization(visit)
  if (!canCreate(visit, missing)) {
    const needs = ['repo.create', ...(missing.folders.length > 0 ? ['groups.create'] : [])]
    const lacks = listMissing(visit, missing.group, needs)
    throw denied(`the repository does not exist, and you do not have the capability ${lacks} to create it; ${grantors}`)
  }
  await requireTerms(visit, missing.group, 'registry.repo.created')
  await checkRepoBelow(visit.call, missing)
}

type Event = Parameters<EventTable['methods']>[0]

/** Throws DENIED if terms are not accepted that the settings require for the API methods with the same effect. */
async function requireTerms({ registry: { app } }: Visit, scope: string, event: Event): Promise<void> {
  await app.terms.check(scope, ...app.eventTable.methods(event))
}
