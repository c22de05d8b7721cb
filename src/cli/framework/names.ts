// Search of resources by the names that users know. A text in the form of a uid is always a uid, and never searched as a name.
import { chunks } from '#lib/chunks.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { parentOf as above, isUid, lineage, operatorUid } from '#lib/uid.ts'
import type { ApiReader, Lists } from './api-reader.ts'
import { CliError, exitCodes, failure, usageError } from './cli-error.ts'
import type { Names } from './outputs.ts'

type Named = { uid: string; name: string }

const idsPerRequest = 50
/** Maximum number of similar names that an error lists. */
const shownNames = 10

/** Error for a name that no visible resource has. */
export class NameNotFound extends CliError {
  override name = 'NameNotFound'
  constructor(message: string) {
    super(exitCodes.failed, message)
  }
}

/**
 * Throws if a name, or a part of a path, is empty. An empty variable in a script must not select all resources, or the only one.
 */
export function checkNamed(given: string, what: string): void {
  if (given !== '' && !given.split('/').includes('')) return
  if (given === '') throw usageError(`the name of the ${what} is empty; give a name or a uid`)
  throw usageError(`${plain(given)} does not name one ${what}: a part of it is empty`)
}

/** Uid of the group that a path of names leads to, such as `acme` or `acme/team`. */
export async function groupOf(api: Lists, given: string): Promise<string> {
  if (isUid(given)) return given
  checkNamed(given, 'organization or folder')
  const [first = '', ...folders] = given.split('/')
  let uid = ''
  try {
    uid = await organizationOf(api, first)
  } catch (error) {
    // A caller may have access to a folder and not to the groups above it. Such a caller can still use the full path of the
    // folder.
    const folder = error instanceof NameNotFound && folders.length > 0 ? await folderOf(api, given) : undefined
    if (folder === undefined) throw error
    return folder
  }
  let path = first
  for (const name of folders) {
    const { items } = await api.list<Named>('/iam/v2/groups', 'groups', { name, 'uidp.children_of': uid }, 1)
    if (!items[0]) {
      const hint = `to list the folders: pinfold folders list --in ${path}`
      throw new NameNotFound(`there is no folder ${name} in ${path} that you can see\n${hint}`)
    }
    uid = items[0].uid
    path += `/${name}`
  }
  return uid
}

/** Finds a folder by its path if the caller cannot see the groups above it. Each visible name must match its part of the path. */
async function folderOf(api: Lists, path: string): Promise<string | undefined> {
  const wanted = path.split('/')
  const { items } = await api.list<Named>('/iam/v2/groups', 'groups', { name: wanted.at(-1)! })
  const all = items.map(({ uid }) => uid)
  const names = await namesOf(api, { groups: all })
  const found = all.filter((uid) => {
    // A group that the caller cannot see has its uid part in place of a name.
    const [parts, ids] = [names.path(uid).split('/'), uid.split('/')]
    return parts.length === wanted.length && parts.every((part, i) => part === wanted[i] || part === ids[i])
  })
  if (found.length < 2) return found[0]
  const lines = found.join('\n')
  throw failure(
    `several folders match ${path}, and you cannot see their organizations; give one of these uids:\n${lines}`,
  )
}

/** Finds the organization with a name. */
export async function organizationOf(api: Lists, name: string): Promise<string> {
  if (isUid(name)) return name
  checkNamed(name, 'organization')
  const query = { name, 'uidp.in_root': 'true' }
  const { items } = await api.list<Named>('/iam/v2/groups', 'groups', query, 1)
  if (items[0]) return items[0].uid
  throw new NameNotFound(await noOrganization(api, name))
}

async function noOrganization(api: Lists, name: string): Promise<string> {
  const all = await api.list<Named>('/iam/v2/groups', 'groups', { 'uidp.in_root': 'true' }, shownNames)
  const names = all.items.map((one) => plain(one.name)).join(', ') + (all.more ? ' and more' : '')
  const seen = all.items.length > 0 ? `you can see: ${names}` : 'you cannot see any organization'
  const rest =
    all.items.length > 0 ? '' : '; give a folder as ORG/FOLDER or by its uid, which pinfold folders list -o wide shows'
  const make = api.operator ? `; to create it: pinfold orgs create ${name}` : ''
  return `there is no organization ${name} that you can see\n${seen}${make || rest}`
}

export type Kind = {
  path: string
  member: string
  words: readonly [one: string, many: string]
  /** Command that lists resources of this kind. Default: the plural of the kind. */
  list?: string
  /** Kind of the parent resource, if the parent is not a group. */
  above?: string
}

const identityKind: Kind = {
  path: '/iam/v2/identities',
  member: 'identities',
  words: ['identity', 'identities'],
}

/** Finds a resource by its uid, by its name, or by the path of its group and its name. */
export async function findNamed(api: Lists, kind: Kind, given: string): Promise<string> {
  if (isUid(given)) return given
  checkNamed(given, kind.words[0])
  const at = given.lastIndexOf('/')
  const name = given.slice(at + 1)
  const inGroup = at < 0 ? {} : { 'uidp.children_of': await groupOf(api, given.slice(0, at)) }
  const { items } = await api.list<Named>(kind.path, kind.member, { name, ...inGroup }, shownNames)
  return onlyOf(items, kind, given)
}

/** Finds the uid of an identity. */
export const findIdentity = (api: Lists, given: string): Promise<string> => findNamed(api, identityKind, given)

/** The uid of the only item in `items`, which have the given name. Throws if there is no item, or more than one. */
export function onlyOf(
  items: readonly { uid: string }[],
  { words, list, above: parent = 'GROUP' }: Pick<Kind, 'words' | 'list' | 'above'>,
  given: string,
): string {
  const at = given.lastIndexOf('/')
  const name = given.slice(at + 1)
  const [found, ...others] = items
  if (!found) {
    const where = at < 0 ? '' : ` in ${given.slice(0, at)}`
    const hint = `to list the ${words[1]}: ${list ?? `pinfold ${words[1].replaceAll(' ', '-')} list`}`
    throw new NameNotFound(`there is no ${words[0]} ${name}${where} that you can see\n${hint}`)
  }
  if (others.length === 0) return found.uid
  const lines = items.map(({ uid }) => uid).join('\n')
  throw failure(`several ${words[1]} have the name ${name}; give ${parent}/${name} or one of these uids:\n${lines}`)
}

/** Uids of resources whose names are shown. */
export type Mentions = Partial<Record<'groups' | 'roles' | 'repos' | 'identities', readonly string[]>>

/** Reads the names of these resources, in few requests. */
export async function namesOf(
  api: Lists,
  { groups = [], roles = [], repos = [], identities = [] }: Mentions,
): Promise<Names> {
  const known = new Map<string, string>()
  const read = async (path: string, member: string, uids: readonly string[]) => {
    for (const some of chunks([...new Set(uids)], idsPerRequest)) {
      const { items } = await api.list<Named>(path, member, { 'uidp.ids': some })
      for (const { uid, name } of items) known.set(uid, name)
    }
  }
  await read('/iam/v2/groups', 'groups', groups.filter(isUid).flatMap(lineage))
  await read('/iam/v2/roles', 'roles', roles.filter(isUid))
  // The uid of a repository and of a folder look alike. Uids of groups already have a name, so the rest are repositories.
  const rest = repos.filter((uid) => isUid(uid) && uid.includes('/') && !known.has(uid))
  await read('/registry/v2/repos', 'repos', rest)
  const actors = identities.length > 0 ? await actorsOf(api, identities) : known
  const of = (uid: string) => actors.get(uid) ?? known.get(uid) ?? uid
  const path = (uid: string) => {
    if (!isUid(uid)) return uid
    const parts = lineage(uid).reverse()
    return parts.map((one) => known.get(one) ?? one.slice(one.lastIndexOf('/') + 1)).join('/')
  }
  return { of, path }
}

/**
 * Names of identities by their uids. A push token has the name of its creator. An actor that the caller cannot see keeps its uid.
 */
async function actorsOf(api: Lists, uids: readonly string[]): Promise<Map<string, string>> {
  const known = new Map([[operatorUid, 'operator']])
  const look = async (some: readonly string[]) => {
    const asked = [...new Set(some)].filter((uid) => isUid(uid) && !known.has(uid))
    for (const ids of chunks(asked, idsPerRequest)) {
      // If the names of actors cannot be read, the list is still shown.
      const found = await api
        .list<Named>('/iam/v2/identities', 'identities', { 'uidp.ids': ids })
        .catch(() => undefined)
      for (const { uid, name } of found?.items ?? []) known.set(uid, name)
    }
  }
  await look(uids)
  // The uid of a push token begins with the uid of its creator.
  const tokens = uids.filter((uid) => isUid(uid) && !known.has(uid) && uid.includes('/'))
  await look(tokens.map(above))
  for (const uid of tokens) {
    const maker = known.get(above(uid))
    if (maker !== undefined) known.set(uid, `${maker}, push token`)
  }
  return known
}

/** The uid in an argument. `hint` is the next step in the error for any other text. */
export function uidFrom(given: unknown, hint: string): string {
  const text = String(given)
  if (isUid(text)) return text
  throw usageError(`${text} is not a uid; ${hint}`)
}

/** Uid of the group that contains a resource. Empty for an organization. */
export function groupAbove(uid: string): string {
  return uid.includes('/') ? above(uid) : ''
}

/**
 * Maximum number of resources that are searched. If the name begins with the path of a group, only resources of that group are
 * searched.
 */
const looked = 2000

/** Finds a resource by its uid, by the name that `nameOf` returns, or by the path of its group, a slash and the name. */
export function asListed<T extends { uid: string }>(
  kind: Kind,
  nameOf: (item: T) => string,
  parentOf: (api: ApiReader, given: string) => Promise<string>,
) {
  return async (api: ApiReader, given: string): Promise<string> => {
    if (isUid(given)) return given
    if (given === '') checkNamed(given, kind.words[0])
    const at = given.lastIndexOf('/')
    const above = given.slice(0, Math.max(at, 0))
    const parent = above.split('/').includes('') ? undefined : await parentOf(api, above).catch(unlessNothing)
    // If no group has this path, the slash is a part of the resource's name.
    const name = parent === undefined ? given : given.slice(at + 1)
    const { items } = await api.list<T>(kind.path, kind.member, { 'uidp.children_of': parent }, looked)
    return onlyOf(
      items.filter((item) => nameOf(item) === name),
      kind,
      given,
    )
  }
}

/** Returns undefined for the error that nothing has the name, and throws other errors. */
export function unlessNothing(error: unknown): undefined {
  if (!(error instanceof NameNotFound)) throw error
}
