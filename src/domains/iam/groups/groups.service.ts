import type { Call, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import {
  type AppError,
  alreadyExists,
  type FieldViolation,
  failedPrecondition,
  found,
  invalid,
  notFound,
  type PreconditionViolation,
  permissionDenied,
} from '#lib/errors.ts'
import { applyPatch, checkFields, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Branch, Listed } from '#lib/lists/paging.ts'
import { reservedReason } from '#lib/oci-names.ts'
import { isUid, lineage, newUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { capabilityNumber } from '../access/capabilities.ts'
import { requireWholeToken } from '../access/requirements.ts'
import { aGroup, domainPattern, type Group, groupFields, groupType, maxGroupDepth, ready } from './groups.model.ts'
import * as store from './groups.store.ts'
import { limitsOf, type QuotaLimits, requireRoom } from './limits.service.ts'
import { listNodes } from './list-nodes.ts'

const create = capabilityNumber('groups.create')

/** Reads of groups that look at nobody's rights. */
export { childGroupsByPath, findGroupUid, groupExists, groupsByUid } from './groups.store.ts'

export type NewGroup = Pick<Group, 'name' | 'description' | 'verified' | 'kind'>

export async function getGroup(call: Call, uid: string): Promise<Group> {
  return found(await store.findGroup(call.app.db, uid), groupType, uid)
}

/** The organisation of a name, if there is one. */
export async function findOrganization(reader: Reader, name: string): Promise<Group | undefined> {
  return (await store.findGroups(reader, [{ childrenOf: top }], { name }, 1))[0]
}

/** Throws NOT_FOUND unless the group exists; call it in the transaction that adds something to it. */
export async function requireGroup(reader: Reader, uid: string): Promise<Group> {
  return found(await store.findGroup(reader, uid), groupType, uid)
}

/** For telling a caller the names of the places that their token is for. */
export async function findGroupName(reader: Reader, uid: string): Promise<string | undefined> {
  return (await store.findGroup(reader, uid))?.name
}

/** Organisations that are older than views and have the name of one, some of them. */
export async function organizationsNamedAsViews(reader: Reader): Promise<string[]> {
  const found: string[] = []
  for (const beginning of ['at-', 'min-']) found.push(...(await store.namesBeginning(reader, top, beginning, maxTold)))
  return found
}

const maxTold = 20

export async function listGroups(call: Call, query: ListQuery<store.GroupFilter>): Promise<Listed<Group>> {
  return listNodes(call, query, store.groupList, { inclusive: true })
}

/** `parent` is `/` for an organisation, whose owner the caller becomes. */
export async function createGroup(work: Work, parent: string, input: NewGroup): Promise<Group> {
  const { app } = work
  await checkNewGroup(work, parent, input)
  const group = await app.db.tx(async (tx) => {
    const created = await addGroup(tx, work, parent, input)
    if (parent === top) for (const hook of app.hooks.organizationCreated) await hook(tx, work, created.uid)
    return created
  })
  work.log.info('group created', { uid: group.uid })
  return group
}

/** What can be said of a new group before the transaction that adds it: whether the caller may, and its fields. */
export async function checkNewGroup(work: Work, parent: string, input: NewGroup): Promise<void> {
  const { app } = work
  checkMayCreate(work, parent)
  // The contract names no place for this method, and a push makes folders too; an organisation is nowhere yet.
  if (parent !== top) await app.terms.check(parent, ...app.eventTable.methods('iam.group.created'))
  checkGroup(work, input, parent)
}

/** Adds a group that was checked; nobody owns it yet. `known` are the limits of its organisation, where they were just read. */
export async function addGroup(
  tx: Tx,
  work: Work,
  parent: string,
  input: NewGroup,
  known?: QuotaLimits,
): Promise<Group> {
  const { now } = work.cause
  if (parent !== top) await requireGroup(tx, parent)
  const above = parent === top ? undefined : await requireGroup(tx, rootOf(parent))
  if (above) {
    const limits = known ?? (await limitsOf(tx, work, above.uid))
    if (limits.groups < Number.POSITIVE_INFINITY) {
      requireRoom(limits, 'groups', await store.countGroups(tx, above.uid))
    }
  }
  const created: Group = {
    ...input,
    kind: above ? above.kind : input.kind,
    uid: newUid(parent),
    status: above ? above.status : ready,
    resourceLimits: {},
    createTime: now,
    updateTime: now,
  }
  if (!(await store.insertGroup(tx, created))) throw nameTaken(input.name, parent)
  await emit(tx, work, 'iam.group.created', { subject: created.uid, group: created.uid, resource: aGroup(created) })
  return created
}

/** Changes what `patch` names. A verified organisation cannot be renamed. */
export async function updateGroup(call: Call, uid: string, patch: Patch<Group>): Promise<Group> {
  const group = await call.app.db.tx(async (tx) => {
    const before = found(await store.findGroup(tx, uid), groupType, uid)
    const after = { ...applyPatch<Group>(groupFields, before, patch), updateTime: call.now }
    checkGroup(call, after, parentOf(uid), before)
    if (before.verified && before.name !== after.name) {
      throw failedPrecondition({
        type: 'VERIFIED_NAME',
        subject: uid,
        description: 'a verified organisation cannot be renamed',
      })
    }
    if (!(await store.patchGroup(tx, before, after))) throw nameTaken(after.name, parentOf(uid))
    if (before.kind !== after.kind) await store.setKindBelow(tx, uid, after.kind)
    await emit(tx, call, 'iam.group.updated', { subject: uid, group: uid, resource: aGroup(after) })
    return after
  })
  call.log.info('group updated', { uid, paths: patch.paths })
  return group
}

/** Replaces all that may change. What only staff sets keeps its value where somebody else, or a folder, leaves it empty. */
export async function replaceGroup(call: Call, uid: string, value: NewGroup): Promise<Group> {
  const isWhole = call.caller.operator && parentOf(uid) === top
  const staffOnly = (['verified', 'kind'] as const).filter((name) => isWhole || Boolean(value[name]))
  return updateGroup(call, uid, { paths: ['name', 'description', ...staffOnly], value })
}

/** So many of what keeps a group are named. */
const mostNamed = 5

/** Refused while anything but bindings, invites and accepted terms is left; those of the group itself go with it. */
export async function deleteGroup(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const group = found(await store.findGroup(tx, uid), groupType, uid)
    const blockers = call.app.resources.filter(({ groupDeletion }) => groupDeletion === 'blocks')
    const left = await store.resourcesBelow(tx, uid, blockers)
    const violations = left.map(({ table }): PreconditionViolation => {
      const description = `the group still has ${table.replaceAll('_', ' ')} below it`
      return { type: 'RESOURCE_NOT_EMPTY', subject: uid, description }
    })
    for (const { table } of call.app.resources.filter(({ groupDeletion }) => groupDeletion === 'released')) {
      const uids = await store.unreleasedOf(tx, uid, table, mostNamed)
      const description = `the group still has ${table}, to be released first: ${uids.join(', ')}`
      if (uids.length > 0) violations.push({ type: 'RESOURCE_NOT_EMPTY', subject: uid, description })
    }
    const [first, ...more] = violations
    if (first) throw failedPrecondition(first, ...more)
    for (const hook of call.app.hooks.groupDeleting) await hook(tx, uid)
    await store.deleteGroup(tx, group)
    await emitDeleted(tx, call, 'iam.group.deleted', uid)
  })
  call.log.info('group deleted', { uid })
}

/** How many groups of one name or part of a uid are looked at; more than one that fits is refused anyway. */
const maxMatches = 100

/** `parent` is empty for an organisation, else a uid, the tail of one, or the name of a group the caller can reach. */
export async function resolveParent(call: Call, parent: string): Promise<string> {
  if (parent === '' || isUid(parent)) return parent || top
  const byTail = /^[0-9a-f]{16}(?:\/[0-9a-f]{16})*$/.test(parent)
    ? (await reachableGroups(call, { tail: parent })).filter((group) => group.uid.endsWith(`/${parent}`))
    : []
  return onlyOne(byTail.length > 0 ? byTail : await reachableGroups(call, { name: parent }), parent)
}

/** The same where instead of its tail a uid may be cut short. What is also the name of a group is that. */
export async function resolveParentByStart(call: Call, parent: string): Promise<string> {
  if (parent === '' || isUid(parent)) return parent || top
  const named = await reachableGroups(call, { name: parent })
  const isStart = /^(?:[0-9a-f]{40}(?:\/[0-9a-f]{16}){0,20}\/)?[0-9a-f]{1,39}$/.test(parent)
  return onlyOne(named.length > 0 || !isStart ? named : await reachableGroups(call, { start: parent }), parent)
}

async function reachableGroups(call: Call, by: Parameters<typeof store.findGroups>[2]): Promise<Group[]> {
  const reachable = call.reach.flatMap((place): Branch[] => [
    { below: place },
    ...(place === top ? [] : [{ uids: [place] }]),
  ])
  return store.findGroups(call.app.db, reachable, by, maxMatches)
}

function onlyOne([only, another]: readonly Group[], parent: string): string {
  if (another) throw invalid({ field: 'parent', description: 'names more than one group; give its uid' })
  if (!only) throw notFound(groupType, parent)
  return only.uid
}

function checkMayCreate({ app, caller }: Work, parent: string): void {
  if (caller.rights.holds(parent, [create])) return
  if (parent !== top) {
    throw permissionDenied('the caller does not hold groups.create there; an owner of the organisation can grant it')
  }
  if (!app.config.openOrganizations) throw permissionDenied('only the operator creates organisations on this server')
  if (caller.session?.organization) throw permissionDenied('this sign-in counts in one organisation only')
  // It would be bound to a group outside its own, which gives it nothing, and nobody would own the organisation.
  if (parentOf(caller.uid) !== top) throw permissionDenied('an identity of a group cannot own an organisation')
  // Who makes one owns it, whatever the token was made for.
  requireWholeToken(caller, 'create organisations')
}

/** What can be said of the fields of a group, whoever makes or changes it. */
export function checkGroup(work: Work, group: NewGroup, parent: string, before?: Group): void {
  const { caller } = work
  const problems: FieldViolation[] = []
  const staffOnly = group.verified !== (before?.verified ?? false) || group.kind !== (before?.kind ?? 0)
  if (parent !== top) {
    const field = group.verified ? 'verified' : 'kind'
    if (staffOnly) problems.push({ field, description: 'belongs to organisations, not to folders' })
    if (lineage(parent).length >= maxGroupDepth) {
      problems.push({ field: 'parent', description: `groups nest at most ${maxGroupDepth} deep` })
    }
  } else {
    if (staffOnly && !caller.operator) {
      throw permissionDenied('only staff set verified and kind')
    }
    if (group.name !== before?.name) problems.push(...reservations(work, group.name))
    if (group.verified && !domainPattern.test(group.name)) {
      problems.push({ field: 'name', description: 'of a verified organisation must be a domain' })
    }
    if (group.verified && !group.kind) {
      problems.push({ field: 'kind', description: 'is required for a verified organisation' })
    }
  }
  checkFields<NewGroup>({ name: groupFields.name, description: groupFields.description }, group, problems)
}

/** Whether the name is taken makes no difference, so that nobody learns it here. */
function reservations({ app, caller }: Work, name: string): FieldViolation[] {
  const why =
    name === app.config.publicOrg && !caller.operator
      ? 'is that of the public organisation, which only the operator gives'
      : reservedReason(name)
  return why === undefined ? [] : [{ field: 'name', description: `is reserved: it ${why}` }]
}

function nameTaken(name: string, parent: string): AppError {
  return alreadyExists(
    groupType,
    name,
    parent === top ? 'an organisation has this name' : `a group of ${parent} has this name`,
  )
}
