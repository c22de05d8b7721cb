// Conversion between names in addresses and uids. Each level of the path is one request, and answers are cached.
import { ask, MissingPath, Refusal } from './api.ts'
import { readPage } from './list.ts'
import type { Group, Identity, Repo } from './types.ts'

/** A group or a repository, with the names on its path. */
export type WithPath<T> = { names: readonly string[]; groups: readonly Group[]; item: T }

const groupsByName = new Map<string, Promise<Group | undefined>>()
const groupsByUid = new Map<string, Promise<Group | undefined>>()
const reposByUid = new Map<string, Promise<Repo | undefined>>()
const identitiesByUid = new Map<string, Promise<string | undefined>>()

/** Segment of an address that is a uid, for users who cannot see the groups above. */
const byUid = 'uid:'
export const uidPart = (uid: string): string => byUid + uid.replaceAll('/', '.')
const uidIn = (part: string): string | undefined =>
  part.startsWith(byUid) ? part.slice(byUid.length).replaceAll('.', '/') : undefined

/** Clears the cached names. Called after a group or a repository was created, renamed or deleted. */
export function forgetPaths(): void {
  groupsByName.clear()
  groupsByUid.clear()
  reposByUid.clear()
}

export const parentOf = (uid: string): string => uid.slice(0, Math.max(0, uid.lastIndexOf('/')))

/** Finds the group with these names. Throws `Refusal` with 404 if the group is missing or the user cannot see it. */
export async function findGroup(names: readonly string[]): Promise<WithPath<Group>> {
  // An address can lack the names, such as that of a repository without a group.
  if (names.length === 0) throw new Refusal(404, '')
  const groups: Group[] = []
  for (const [i, name] of names.entries()) {
    const group = await childGroup(groups[i - 1]?.uid ?? '', name)
    if (!group) throw new MissingPath(names)
    groups.push(group)
  }
  return { names, groups, item: groups.at(-1)! }
}

function childGroup(parent: string, name: string): Promise<Group | undefined> {
  const uid = uidIn(name)
  if (uid !== undefined) return groupOf(uid)
  return remembered(groupsByName, `${parent} ${name}`, async () => {
    const at = parent === '' ? { 'uidp.inRoot': true } : { 'uidp.childrenOf': parent }
    const { items } = await readPage<Group>('/iam/v2/groups', 'groups', { size: 1, query: { ...at, name } })
    return items[0]
  })
}

/** Finds the repository with these names. Throws `Refusal` with 404 if the repository is missing or the user cannot see it. */
export async function findRepo(names: readonly string[]): Promise<WithPath<Repo>> {
  const last = names.at(-1) ?? ''
  const uid = uidIn(last)
  if (uid !== undefined) {
    const item = await repoOf(uid)
    if (!item) throw new MissingPath(names)
    return { names, groups: [], item }
  }
  const { groups, item: group } = await findGroup(names.slice(0, -1)).catch((error: unknown) => {
    throw error instanceof MissingPath ? new MissingPath(names) : error
  })
  const query = { 'uidp.childrenOf': group.uid, name: last }
  const { items } = await readPage<Repo>('/registry/v2/repos', 'repos', { size: 1, query })
  if (!items[0]) throw new MissingPath(names)
  return { names, groups, item: items[0] }
}

function groupOf(uid: string): Promise<Group | undefined> {
  return remembered(groupsByUid, uid, () => found(ask<Group>('GET', `/iam/v2/groups/${uid}`)))
}

function repoOf(uid: string): Promise<Repo | undefined> {
  return remembered(reposByUid, uid, () => found(ask<Repo>('GET', `/registry/v2/repos/${uid}`)))
}

/** Names on the path of a group. A group that the user cannot see has its uid as the name. */
export async function namesOfGroup(uid: string): Promise<string[]> {
  const group = await groupOf(uid)
  if (!group) return [uidPart(uid)]
  const parent = parentOf(uid)
  if (parent === '') return [group.name]
  const above = await namesOfGroup(parent)
  return above.some((one) => one.startsWith(byUid)) ? [uidPart(uid)] : [...above, group.name]
}

/** Names on the path of a repository. */
export async function namesOfRepo(uid: string): Promise<string[]> {
  const [repo, above] = await Promise.all([repoOf(uid), namesOfGroup(parentOf(uid))])
  if (!repo || above.some((one) => one.startsWith(byUid))) return [uidPart(uid)]
  return [...above, repo.name]
}

/** Names on the path of a group or a repository. */
export async function pathNamesOf(uid: string): Promise<{ names: string[]; isRepo: boolean }> {
  const isRepo = (await repoOf(uid)) !== undefined
  return { names: await (isRepo ? namesOfRepo(uid) : namesOfGroup(uid)), isRepo }
}

/** Name of an identity. `undefined` if the user cannot see the identity. */
export function nameOfIdentity(uid: string): Promise<string | undefined> {
  return remembered(
    identitiesByUid,
    uid,
    async () => (await found(ask<Identity>('GET', `/iam/v2/identities/${uid}`)))?.name,
  )
}

/** Reads a resource. Returns undefined if the resource is missing or the user cannot see it. */
async function found<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof Refusal && [403, 404].includes(error.status)) return undefined
    throw error
  })
}

const most = 2000

function remembered<T>(known: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  const old = known.get(key)
  if (old) return old
  if (known.size >= most) known.delete(known.keys().next().value!)
  const asked = read().catch((error: unknown) => {
    known.delete(key)
    throw error
  })
  known.set(key, asked)
  return asked
}
