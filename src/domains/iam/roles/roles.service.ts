import type { Call } from '#app.ts'
import type { Db, Reader } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import {
  type AppError,
  alreadyExists,
  type FieldViolation,
  failedPrecondition,
  found,
  invalid,
  notFound,
  permissionDenied,
} from '#lib/errors.ts'
import { applyPatch, checkFields, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isAtOrBelow, isUid, newUid, parentOf, top } from '#lib/uid.ts'
import { builtInRoles, builtInVersion, operatorRole, ownerRole } from '../access/built-in-roles.ts'
import { capabilities, capabilityNumber } from '../access/capabilities.ts'
import { requireRecentSignIn } from '../access/requirements.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listNodes } from '../groups/list-nodes.ts'
import { type Role, roleFields, roleType, toRoleResource } from './roles.model.ts'
import * as store from './roles.store.ts'

export type NewRole = Pick<Role, 'name' | 'description' | 'capabilities'>

const internal = capabilityNumber('internal')

/** Role of this uid. All callers can read built-in roles. A custom role requires `roles.list` on its group. */
export async function getRole(call: Call, uid: string): Promise<Role> {
  if (!isUid(uid)) throw invalid({ field: 'uid', description: 'is not a uid' })
  if (parentOf(uid) !== top && !call.reach.some((scope) => isAtOrBelow(uid, scope))) throw permissionDenied()
  const role = found(await store.findRole(call.app.db, uid), roleType, uid)
  return withoutUnknown(role)
}

export async function listRoles(call: Call, query: ListQuery<store.RoleFilter>): Promise<Listed<Role>> {
  const listed = await listNodes(call, query, store.roleList, { publicRoots: call.reach.length > 0 })
  return { ...listed, items: listed.items.map(withoutUnknown) }
}

/** Roles with these uids. Missing roles are left out. Permissions are not checked. */
export async function rolesByUid(reader: Reader, uids: readonly string[]): Promise<Map<string, Role>> {
  const roles = await store.rolesByUid(reader, uids)
  return new Map([...roles].map(([uid, role]) => [uid, withoutUnknown(role)]))
}

export async function createRole(call: Call, parent: string, input: NewRole): Promise<Role> {
  const wanted = ascending(input.capabilities)
  checkRole({ ...input, capabilities: wanted })
  checkGrantable(call, parent, wanted)

  const role = await call.app.db.tx(async (tx) => {
    await requireGroup(tx, parent)
    const times = { createTime: call.now, updateTime: call.now }
    const created: Role = { ...input, capabilities: wanted, uid: newUid(parent), ...times }
    if (!(await store.insertRole(tx, created))) throw nameTaken(input.name)
    await emit(tx, call, 'iam.roles.created', { subject: created.uid, resource: toRoleResource(created) })
    return created
  })
  call.log.info('role created', { uid: role.uid })
  return role
}

/** Updates a role. Identities that have the role get the new capabilities at once. */
export async function updateRole(call: Call, uid: string, patch: Patch<Role>): Promise<Role> {
  refuseBuiltIn(uid)
  const role = await call.app.db.tx(async (tx) => {
    const before = found(await store.findRole(tx, uid), roleType, uid)
    const patched = applyPatch<Role>(roleFields, before, patch)
    const after = { ...patched, capabilities: ascending(patched.capabilities), updateTime: call.now }
    checkRole(after, before)
    checkGrantable(call, parentOf(uid), after.capabilities, before.capabilities)
    if (!(await store.patchRole(tx, before, after))) throw nameTaken(after.name)
    await emit(tx, call, 'iam.roles.updated', { subject: uid, resource: toRoleResource(withoutUnknown(after)) })
    return withoutUnknown(after)
  })
  call.log.info('role updated', { uid, paths: patch.paths })
  return role
}

export async function deleteRole(call: Call, uid: string): Promise<void> {
  refuseBuiltIn(uid)
  await call.app.db.tx(async (tx) => {
    const role = found(await store.findRole(tx, uid), roleType, uid)
    const use = await findUse(tx, call, uid)
    if (use) throw failedPrecondition({ type: 'RESOURCE_IN_USE', subject: uid, description: use })
    await store.deleteRole(tx, role)
    await emitDeleted(tx, call, 'iam.roles.deleted', uid)
  })
  call.log.info('role deleted', { uid })
}

/** Reason why the role cannot be deleted. Undefined if it can. */
async function findUse(reader: Reader, { app, now }: Call, uid: string): Promise<string | undefined> {
  if (await store.isRoleBound(reader, uid)) return 'the role is still granted; delete its role bindings first'
  for (const hook of app.hooks.roleInUse) {
    const use = await hook(reader, uid, now)
    if (use) return use
  }
  return undefined
}

/**
 * Role that can be granted on `group`: a built-in role, or a role of the group or of a group above. Throws NOT_FOUND for other
 * roles.
 */
async function requireUsableRole(reader: Reader, uid: string, group: string): Promise<Role> {
  const role = await store.findRole(reader, uid)
  if (!role || !isAtOrBelow(group, parentOf(uid))) throw notFound(roleType, uid)
  return role
}

/**
 * Role that the caller can grant on `group`. Throws NOT_FOUND if the role cannot be granted there. Throws PERMISSION_DENIED
 * unless the caller holds all of its capabilities on the group. A role with all capabilities of owners needs a recent sign-in.
 */
export async function requireGrantableRole(reader: Reader, call: Call, uid: string, group: string): Promise<Role> {
  const role = await requireUsableRole(reader, uid, group)
  if (role.uid === operatorRole.uid && !call.caller.operator) {
    throw permissionDenied('only the operator can grant this role')
  }
  if (!call.caller.rights.holds(group, role.capabilities)) {
    throw permissionDenied(
      'the role has capabilities that the caller does not have here; you can grant only your own capabilities',
    )
  }
  if (ownerRole.capabilities.every((one) => role.capabilities.includes(one))) requireRecentSignIn(call)
  return role
}

/**
 * Writes the built-in roles of this version to the database. Does nothing if the database has those of a newer version, since an
 * older role can have fewer capabilities.
 */
export async function installBuiltInRoles(db: Db, now: string, version = builtInVersion): Promise<void> {
  await db.tx(async (tx) => {
    if (!(await store.takeBuiltInVersion(tx, version))) return
    for (const builtIn of builtInRoles) {
      const before = await store.findRole(tx, builtIn.uid)
      if (!before) await store.insertRole(tx, { ...builtIn, createTime: now, updateTime: now })
      else if (differs(before, builtIn)) await store.patchRole(tx, before, { ...before, ...builtIn, updateTime: now })
    }
  })
}

function differs(a: NewRole, b: NewRole): boolean {
  const text = ({ name, description, capabilities }: NewRole) => JSON.stringify([name, description, capabilities])
  return text(a) !== text(b)
}

function ascending(numbers: readonly number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b)
}

/** Leaves out capabilities that this version does not have, because a newer version has added them. The database keeps them. */
function withoutUnknown<T extends Role>(role: T): T {
  return { ...role, capabilities: role.capabilities.filter((number) => capabilities.has(number)) }
}

function checkRole(role: NewRole, before?: Role): void {
  const problems: FieldViolation[] = []
  const addProblem = (description: string) => problems.push({ field: 'capabilities', description })
  const added = role.capabilities.filter((number) => !before?.capabilities.includes(number))
  if (role.capabilities.length === 0) addProblem('must have at least one capability')
  if (added.some((number) => !capabilities.has(number))) addProblem('has an unknown capability')
  checkFields<NewRole>({ name: roleFields.name, description: roleFields.description }, role, problems)
}

/** Throws PERMISSION_DENIED unless the caller holds each added capability on the group of the role. */
function checkGrantable(call: Call, group: string, wanted: readonly number[], before: readonly number[] = []): void {
  const added = wanted.filter((number) => !before.includes(number))
  if (!call.caller.rights.holds(group, added)) {
    throw permissionDenied(
      'the role has capabilities that the caller does not have here; you can grant only your own capabilities',
    )
  }
  if (wanted.some((number) => capabilities.get(number)?.internalOnly) && !wanted.includes(internal)) {
    throw permissionDenied('a role with internal capabilities also needs the capability internal')
  }
}

function refuseBuiltIn(uid: string): void {
  if (parentOf(uid) === top && builtInRoles.some((role) => role.uid === uid)) {
    throw failedPrecondition({ type: 'BUILT_IN', subject: uid, description: 'built-in roles cannot be changed' })
  }
}

function nameTaken(name: string): AppError {
  return alreadyExists(roleType, name, 'a role of the group has this name')
}
