// Members of a group: people and service accounts, with their roles there, above and below.
import { ask, Refusal } from './api.ts'
import { readNext, readPage } from './list.ts'
import { parentOf } from './names.ts'
import type { Group, Identity, PushToken, RoleBinding } from './types.ts'

export type MemberRole = {
  uid: string
  role: string
  roleUid: string
  group: { uid: string; name: string }
  where: 'here' | 'above' | 'below'
}
export type Member = {
  uid: string
  /** Empty for a person who has not accepted yet. */
  name: string
  email: string
  detail: string
  lastSeenTime: string
  isPerson: boolean
  roles: MemberRole[]
}
export type Members = { members: Member[]; hidden: number; isCut: boolean }

const pages = 5
export const mostBindings = pages * 200

/** Uids of people have no parent. Identities of workloads belong to a group. */
export const isPersonUid = (uid: string): boolean => parentOf(uid) === ''

/** Reads the members of the last group. `groups` are the groups on its path, the organization first. */
export async function readMembers(groups: readonly Group[], signal?: AbortSignal): Promise<Members> {
  const group = groups.at(-1)!
  const above = groups.slice(0, -1)
  const [own, identities, ...others] = await Promise.all([
    readBindings({ 'uidp.descendantsOf': group.uid }, signal),
    readIdentities(group.uid, signal),
    ...above.map((one) => readBindings({ 'uidp.childrenOf': one.uid }, signal)),
  ])
  const members = new Map<string, Member>()
  for (const identity of identities) members.set(identity.uid, { ...memberOf(identity), roles: [] })
  for (const binding of [...own.items, ...others.flatMap(({ items }) => items)]) {
    const { identityUid, identity } = binding
    const member = members.get(identityUid) ?? { ...memberOf({ ...identity, uid: identityUid }), roles: [] }
    members.set(identityUid, { ...member, roles: [...member.roles, roleOf(binding, group.uid)] })
  }
  const sorted = [...members.values()].sort((a, b) => labelOf(a).localeCompare(labelOf(b)))
  return {
    members: sorted,
    hidden: others.filter(({ isHidden }) => isHidden).length,
    isCut: own.isCut || others.some(({ isCut }) => isCut),
  }
}

/** Name for lists. People without a name are listed by their email address. */
export const labelOf = ({ name, email }: Pick<Member, 'name' | 'email'>): string => name || email

function memberOf(identity: Partial<Identity> & { uid: string; issuer?: string; subject?: string }) {
  const { uid, name = '', email = '', description = '', lastSeenTime = '' } = identity
  return { uid, name, email, detail: description, lastSeenTime, isPerson: isPersonUid(uid) }
}

function roleOf({ uid, role, roleUid, group }: RoleBinding, here: string): MemberRole {
  const where = group.uid === here ? 'here' : group.uid.startsWith(`${here}/`) ? 'below' : 'above'
  return { uid, role: role.name, roleUid, group, where }
}

type Bindings = { items: RoleBinding[]; isHidden: boolean; isCut: boolean }

/** The user may have no access to the bindings of a group above. */
async function readBindings(query: Record<string, string>, signal: AbortSignal | undefined): Promise<Bindings> {
  const items: RoleBinding[] = []
  let after = ''
  try {
    for (let page = 0; page < pages; page++) {
      const read = await readNext<RoleBinding>('/iam/v2/roleBindings', 'roleBindings', { after, query, signal })
      items.push(...read.items)
      after = read.next
      if (after === '') break
    }
  } catch (error) {
    if (error instanceof Refusal && error.status === 403) return { items: [], isHidden: true, isCut: false }
    throw error
  }
  return { items, isHidden: false, isCut: after !== '' }
}

/** Service accounts, also those without a role. Empty if the user cannot list them. */
async function readIdentities(group: string, signal: AbortSignal | undefined): Promise<Identity[]> {
  const query = { 'uidp.descendantsOf': group, orderBy: 'name' }
  return readPage<Identity>('/iam/v2/identities', 'identities', { size: 200, query, signal }).then(
    ({ items }) => items,
    (error: unknown) => {
      if (error instanceof Refusal && error.status === 403) return []
      throw error
    },
  )
}

/** Number of push tokens of a member for a group. Undefined if the user cannot see them. */
export async function countPushTokens(
  group: string,
  identity: string,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const path = `/control/v1/groupPushTokens/${group}`
  const asked = ask<{ pushTokens: PushToken[] }>('GET', path, { query: { pageSize: 200 }, signal })
  return asked.then(
    ({ pushTokens = [] }) => pushTokens.filter(({ identityUid }) => identityUid === identity).length,
    () => undefined,
  )
}
