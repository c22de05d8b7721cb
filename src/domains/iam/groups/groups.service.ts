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
  missingCapabilities,
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
import {
  domainPattern,
  type Group,
  groupFields,
  groupType,
  maxGroupDepth,
  ready,
  toGroupResource,
} from './groups.model.ts'
import * as store from './groups.store.ts'
import { limitsOf, type QuotaLimits, requireCapacity } from './limits.service.ts'
import { listNodes } from './list-nodes.ts'

const create = capabilityNumber('groups.create')

/** Reads of groups without a check of permissions. */
export { childGroupsByPath, findGroupUid, groupExists, groupsByUid } from './groups.store.ts'

export type NewGroup = Pick<Group, 'name' | 'description' | 'verified' | 'kind'>

export async function getGroup(call: Call, uid: string): Promise<Group> {
  return found(await store.findGroup(call.app.db, uid), groupType, uid)
}

/** Organization of this name, if there is one. */
export async function findOrganization(reader: Reader, name: string): Promise<Group | undefined> {
  return (await store.findGroups(reader, [{ childrenOf: top }], { name }, 1))[0]
}

/** Throws NOT_FOUND unless the group exists. Call it in the transaction that adds a resource to the group. */
export async function requireGroup(reader: Reader, uid: string): Promise<Group> {
  return found(await store.findGroup(reader, uid), groupType, uid)
}

/** Name of a group, to show callers the scopes of their token. */
export async function findGroupName(reader: Reader, uid: string): Promise<string | undefined> {
  return (await store.findGroup(reader, uid))?.name
}

export async function hasOrganizations(reader: Reader): Promise<boolean> {
  return (await store.countGroups(reader, top)) > 0
}

/** Some of the organizations whose names look like views (`at-…`, `min-…`). They are older than views. */
export async function organizationsNamedAsViews(reader: Reader): Promise<string[]> {
  const found: string[] = []
  for (const beginning of ['at-', 'min-'])
    found.push(...(await store.namesBeginning(reader, top, beginning, maxListed)))
  return found
}

const maxListed = 20

export async function listGroups(call: Call, query: ListQuery<store.GroupFilter>): Promise<Listed<Group>> {
  return listNodes(call, query, store.groupList, { inclusive: true })
}

/** Creates a folder. If `parent` is `/`, creates an organization, with the caller as its owner. */
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

/** Checks a new group before the transaction that adds it: permission of the caller, terms, and fields. */
export async function checkNewGroup(work: Work, parent: string, input: NewGroup): Promise<void> {
  const { app } = work
  checkMayCreate(work, parent)
  // The contract names no scope for this method, and pushes create folders too. An organization cannot accept terms before it
  // exists.
  if (parent !== top) await app.terms.check(parent, ...app.eventTable.methods('iam.group.created'))
  checkGroup(work, input, parent)
}

/** Adds a checked group, without an owner. `known` has the limits of its organization if they were just read. */
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
      requireCapacity(limits, 'groups', await store.countGroups(tx, above.uid))
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
  await emit(tx, work, 'iam.group.created', {
    subject: created.uid,
    group: created.uid,
    resource: toGroupResource(created),
  })
  return created
}

/** Changes what `patch` names. A verified organization cannot be renamed. */
export async function updateGroup(call: Call, uid: string, patch: Patch<Group>): Promise<Group> {
  const group = await call.app.db.tx(async (tx) => {
    const before = found(await store.findGroup(tx, uid), groupType, uid)
    const after = { ...applyPatch<Group>(groupFields, before, patch), updateTime: call.now }
    checkGroup(call, after, parentOf(uid), before)
    if (before.verified && before.name !== after.name) {
      throw failedPrecondition({
        type: 'VERIFIED_NAME',
        subject: uid,
        description: 'a verified organization cannot be renamed',
      })
    }
    if (!(await store.patchGroup(tx, before, after))) throw nameTaken(after.name, parentOf(uid))
    if (before.kind !== after.kind) await store.setKindBelow(tx, uid, after.kind)
    await emit(tx, call, 'iam.group.updated', { subject: uid, group: uid, resource: toGroupResource(after) })
    return after
  })
  call.log.info('group updated', { uid, paths: patch.paths })
  return group
}

/**
 * Replaces all fields that can change. Fields that only staff sets keep their value if another caller, or the PUT of a folder,
 * leaves them empty.
 */
export async function replaceGroup(call: Call, uid: string, value: NewGroup): Promise<Group> {
  const isWhole = call.caller.operator && parentOf(uid) === top
  const staffOnly = (['verified', 'kind'] as const).filter((name) => isWhole || Boolean(value[name]))
  return updateGroup(call, uid, { paths: ['name', 'description', ...staffOnly], value })
}

/** Names of the contents of a group in errors, where they differ from the names of tables. */
export const contentNames: Readonly<Record<string, string>> = {
  groups: 'folders',
  repos: 'repositories',
  repo_removals: 'deletions of repositories that have not finished',
}

/** Most resources that an error names as blocking the deletion of a group. */
const mostNamed = 5

/**
 * Deletes a group with everything whose `groupDeletion` allows it, such as bindings, invites, rules and push tokens. Throws
 * FAILED_PRECONDITION while other resources are left.
 */
export async function deleteGroup(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const group = found(await store.findGroup(tx, uid), groupType, uid)
    const blockers = call.app.resources.filter(({ groupDeletion }) => groupDeletion === 'blocks')
    const left = await store.resourcesBelow(tx, uid, blockers)
    const violations = left.map(({ table }): PreconditionViolation => {
      const next = table === 'repo_removals' ? 'wait until they have finished' : 'delete them first'
      const description = `the group still has ${contentNames[table] ?? table.replaceAll('_', ' ')}; ${next}`
      return { type: 'RESOURCE_NOT_EMPTY', subject: uid, description }
    })
    for (const { table } of call.app.resources.filter(({ groupDeletion }) => groupDeletion === 'released')) {
      const uids = await store.unreleasedOf(tx, uid, table, mostNamed)
      const description = `the group still has ${table}; release them first: ${uids.join(', ')}`
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

/** Most groups read for a name or part of a uid. More than one match is refused anyway. */
const maxMatches = 100

/**
 * Finds the parent of a new group. `parent` is empty for an organization, else a uid, the last segments of one, or the name of a
 * group that the caller can see.
 */
export async function resolveParent(call: Call, parent: string): Promise<string> {
  if (parent === '' || isUid(parent)) return parent || top
  const byTail = /^[0-9a-f]{16}(?:\/[0-9a-f]{16})*$/.test(parent)
    ? (await reachableGroups(call, { tail: parent })).filter((group) => group.uid.endsWith(`/${parent}`))
    : []
  return requireOne(byTail.length > 0 ? byTail : await reachableGroups(call, { name: parent }), parent)
}

/**
 * Like `resolveParent`, but accepts the beginning of a uid instead of its last segments. A text that is also the name of a group
 * is that group.
 */
export async function resolveParentByStart(call: Call, parent: string): Promise<string> {
  if (parent === '' || isUid(parent)) return parent || top
  const named = await reachableGroups(call, { name: parent })
  const isStart = /^(?:[0-9a-f]{40}(?:\/[0-9a-f]{16}){0,20}\/)?[0-9a-f]{1,39}$/.test(parent)
  return requireOne(named.length > 0 || !isStart ? named : await reachableGroups(call, { start: parent }), parent)
}

async function reachableGroups(call: Call, by: Parameters<typeof store.findGroups>[2]): Promise<Group[]> {
  const reachable = call.reach.flatMap((scope): Branch[] => [
    { below: scope },
    ...(scope === top ? [] : [{ uids: [scope] }]),
  ])
  return store.findGroups(call.app.db, reachable, by, maxMatches)
}

function requireOne([only, another]: readonly Group[], parent: string): string {
  if (another)
    throw invalid({ field: 'parent', description: 'is the name of more than one group; use the uid instead' })
  if (!only) throw notFound(groupType, parent)
  return only.uid
}

function checkMayCreate({ app, caller }: Work, parent: string): void {
  if (caller.rights.holds(parent, [create])) return
  if (parent !== top) {
    throw permissionDenied(missingCapabilities(['groups.create'], caller.token?.narrowed))
  }
  if (!app.config.allowOrganizationCreation)
    throw permissionDenied('only the operator can create organizations on this server')
  if (caller.session?.organization)
    throw permissionDenied(
      'your sign-in is limited to one organization, so you cannot create another; sign in with a provider of the server',
    )
  // The owner's binding would be outside of the group of the identity and have no effect. Nobody would own the organization.
  if (parentOf(caller.uid) !== top)
    throw permissionDenied(
      'service accounts cannot create organizations, because they cannot own one; sign in as a user',
    )
  // The creator becomes the owner, even if the token was narrowed to less.
  requireWholeToken(caller, 'create organizations')
}

/** Checks the fields of a group that is created or changed. */
export function checkGroup(work: Work, group: NewGroup, parent: string, before?: Group): void {
  const { caller } = work
  const problems: FieldViolation[] = []
  const staffOnly = group.verified !== (before?.verified ?? false) || group.kind !== (before?.kind ?? 0)
  if (parent !== top) {
    const field = group.verified ? 'verified' : 'kind'
    if (staffOnly) problems.push({ field, description: 'can be set only for organizations, not for folders' })
    if (lineage(parent).length >= maxGroupDepth) {
      problems.push({
        field: 'parent',
        description: `is nested too deeply; groups can have at most ${maxGroupDepth} levels`,
      })
    }
  } else {
    if (staffOnly && !caller.operator) {
      throw permissionDenied('only the operator can set verified and kind')
    }
    if (group.name !== before?.name) problems.push(...reservedNameProblems(work, group.name))
    if (group.verified && !domainPattern.test(group.name)) {
      problems.push({ field: 'name', description: 'must be a domain name, because the organization is verified' })
    }
    if (group.verified && !group.kind) {
      problems.push({ field: 'kind', description: 'is required for a verified organization' })
    }
  }
  checkFields<NewGroup>({ name: groupFields.name, description: groupFields.description }, group, problems)
}

/** Reasons why a name is reserved. The result is the same whether or not the name is taken, so that it reveals nothing. */
function reservedNameProblems({ app, caller }: Work, name: string): FieldViolation[] {
  const why =
    name === app.config.publicOrg && !caller.operator
      ? 'only the operator can create the public organization'
      : reservedReason(name)
  return why === undefined ? [] : [{ field: 'name', description: `is reserved: ${why}` }]
}

function nameTaken(name: string, parent: string): AppError {
  return alreadyExists(
    groupType,
    name,
    parent === top ? 'an organization has this name' : `a folder in ${parent} has this name`,
  )
}
