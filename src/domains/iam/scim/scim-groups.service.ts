// Groups that an identity provider provisions (SCIM 2.0). They are external groups of the provider. Members get the roles of the
// group mappings, in sessions that were started with the provider.
import { randomUUID } from 'node:crypto'
import type { Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { alreadyExists, found, invalid, limitExceeded } from '#lib/errors.ts'
import type { ScimFilter } from './scim-filter.model.ts'
import {
  type ChangedGroup,
  type GroupOfUser,
  type MemberChange,
  type ScimGroup,
  type ScimGroupChange,
  type ScimGroupInput,
  type ScimMember,
  scimGroupLimits,
  scimGroupType,
  toScimGroupResource,
} from './scim-groups.model.ts'
import * as store from './scim-groups.store.ts'

export async function getScimGroup({ app }: Work, provider: string, id: string): Promise<ScimGroup> {
  return requireGroup(app.db, provider, id)
}

export async function membersOfScimGroups({ app }: Work, ids: readonly string[]): Promise<Map<string, ScimMember[]>> {
  return store.membersOf(app.db, ids)
}

/** Groups of people, by the ID of the person. The people must belong to the provider of the caller; this is not checked here. */
export async function groupsOfScimUsers({ app }: Work, ids: readonly string[]): Promise<Map<string, GroupOfUser[]>> {
  return store.groupsOfUsers(app.db, ids)
}

type Listing = { filter: ScimFilter | undefined; skip: number; limit: number; withMembers: boolean }
type Found = { total: number; groups: ScimGroup[] }

/**
 * Page of groups. `withMembers` limits the page: its groups together have at most as many members as one group may have. The page
 * has at least one group.
 */
export async function listScimGroups(
  { app: { db } }: Work,
  provider: string,
  { filter, skip, limit, withMembers }: Listing,
): Promise<Found> {
  const total = await store.countGroups(db, provider, filter)
  const groups = limit === 0 || total === 0 ? [] : await store.listGroups(db, provider, filter, { skip, limit })
  if (!withMembers) return { total, groups }
  const ids = groups.map(({ id }) => id)
  const counts = await store.memberCounts(db, ids)
  let members = 0
  const end = groups.findIndex(({ id }, i) => {
    members += counts.get(id) ?? 0
    return i > 0 && members > scimGroupLimits.members
  })
  return { total, groups: end < 0 ? groups : groups.slice(0, end) }
}

/**
 * Creates a group. Throws ALREADY_EXISTS if another group of the provider has the same display name, or the same name in group
 * mappings.
 */
export async function createScimGroup(
  work: Work,
  provider: string,
  input: ScimGroupInput,
  memberIds: readonly string[],
): Promise<ScimGroup> {
  const { now } = work.cause
  const times = { createTime: now, updateTime: now }
  const group: ScimGroup = { ...input, id: randomUUID(), provider, revision: 1, ...times }
  await work.app.db.tx(async (tx) => {
    const used = await store.countGroups(tx, provider)
    if (used >= scimGroupLimits.groups) {
      throw limitExceeded('scim_groups', 'provisioned groups', used, scimGroupLimits.groups)
    }
    await requireFree(tx, group)
    await store.insertGroup(tx, group)
    const changed = await changeMembers(tx, group, [{ op: 'add', ids: memberIds }])
    await emitChange(tx, work, 'created', { group, ...changed })
  })
  work.log.info('scim group created', { id: group.id, provider })
  return group
}

/** Updates a group. `change` may run more than once. If `change` throws, nothing is updated. */
export async function changeScimGroup(
  work: Work,
  provider: string,
  id: string,
  change: (before: ScimGroup) => ScimGroupChange,
): Promise<ScimGroup> {
  const { group, changed } = await work.app.db.tx(async (tx) => {
    const before = await requireGroup(tx, provider, id)
    const { input, members } = change(before)
    const group = { ...before, ...input, revision: before.revision + 1, updateTime: work.cause.now }
    const changes = await changeMembers(tx, group, members)
    const isSame = JSON.stringify(input.resource) === JSON.stringify(before.resource)
    if (isSame && changes.added.length + changes.removed.length === 0) return { group: before, changed: false }
    await requireFree(tx, group)
    await store.updateGroup(tx, group)
    await emitChange(tx, work, 'updated', { group, ...changes })
    return { group, changed: true }
  })
  if (changed) work.log.info('scim group changed', { id, provider })
  return group
}

/** Deletes a group. Members lose the roles from its group mappings. */
export async function deleteScimGroup(
  work: Work,
  provider: string,
  id: string,
  check: (before: ScimGroup) => void,
): Promise<void> {
  await work.app.db.tx(async (tx) => {
    const group = await requireGroup(tx, provider, id)
    check(group)
    const members = await store.countMembers(tx, id)
    await store.deleteGroup(tx, id)
    await emitChange(tx, work, 'deleted', { group, members, added: [], removed: [] })
  })
  work.log.info('scim group deleted', { id, provider })
}

/** Removes a deleted person from all groups. Each group gets a new revision and an event. */
export async function leaveScimGroups(tx: Tx, work: Work, user: string): Promise<void> {
  const groups = await store.groupsWith(tx, user)
  if (groups.length === 0) return
  const { now } = work.cause
  await store.leaveGroups(tx, user, now)
  const ids = groups.map(({ id }) => id)
  const left = await store.memberCounts(tx, ids)
  for (const before of groups) {
    const group = { ...before, revision: before.revision + 1, updateTime: now }
    await emitChange(tx, work, 'updated', { group, members: left.get(group.id) ?? 0, added: [], removed: [user] })
  }
}

/** Applies changes of the member list in order. Throws INVALID_ARGUMENT if an added member is not a person of the provider. */
async function changeMembers(
  tx: Tx,
  { id, provider }: ScimGroup,
  changes: readonly MemberChange[],
): Promise<Omit<ChangedGroup, 'group'>> {
  const before = new Set(await store.memberIds(tx, id))
  let after = new Set(before)
  for (const { op, ids } of changes) {
    if (op === 'set') after = new Set(ids)
    else
      for (const one of ids)
        if (op === 'add') after.add(one)
        else after.delete(one)
  }
  const added = [...after].filter((one) => !before.has(one))
  const removed = [...before].filter((one) => !after.has(one))
  if (after.size > scimGroupLimits.members) {
    throw limitExceeded('scim_group_members', 'members of one provisioned group', before.size, scimGroupLimits.members)
  }
  await requireUsers(tx, provider, changes)
  await store.removeMembers(tx, id, removed)
  await store.addMembers(tx, id, added)
  const most = scimGroupLimits.ofPerson
  if (await store.isAnyInMore(tx, added, most)) {
    throw limitExceeded('scim_groups_of_person', 'provisioned groups of one user', most, most)
  }
  return { members: after.size, added, removed }
}

/** Throws INVALID_ARGUMENT if an ID to add is not that of a person of this provider. IDs to remove may be unknown. */
async function requireUsers(tx: Tx, provider: string, changes: readonly MemberChange[]): Promise<void> {
  const wanted = [...new Set(changes.flatMap(({ op, ids }) => (op === 'remove' ? [] : ids)))]
  const known = await store.knownUsers(tx, provider, wanted.filter(isId))
  const unknown = wanted.find((one) => !known.has(one))
  if (unknown === undefined) return
  throw invalid({ field: 'members', description: `has ${unknown.slice(0, 64)}, which is not a user of this provider` })
}

/** True if a text has the form of an ID of this server. */
function isId(text: string): boolean {
  return /^[0-9a-f-]{36}$/.test(text)
}

async function requireGroup(reader: Reader, provider: string, id: string): Promise<ScimGroup> {
  return found(await store.findGroup(reader, provider, id), scimGroupType, id)
}

async function requireFree(tx: Tx, group: ScimGroup): Promise<void> {
  if (!(await store.isGroupTaken(tx, group))) return
  const problem = 'another group of the provider has this displayName or externalId'
  throw alreadyExists(scimGroupType, group.displayName, problem)
}

async function emitChange(
  tx: Tx,
  work: Work,
  what: 'created' | 'updated' | 'deleted',
  changed: ChangedGroup,
): Promise<void> {
  const { provider } = changed.group
  const input = { subject: provider, resource: toScimGroupResource(changed) }
  await emit(tx, work, `control.iam.scim_group.${what}`, { ...input, source: `/scim/v2/${provider}` })
}
