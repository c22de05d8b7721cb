import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import {
  type AppError,
  alreadyExists,
  type FieldViolation,
  found,
  invalid,
  notFound,
  refuseIfAny,
} from '#lib/errors.ts'
import { applyPatch, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isAtOrBelow, isUid, newUid, parentOf, top } from '#lib/uid.ts'
import type { Group } from '../groups/groups.model.ts'
import { groupsByUid, requireGroup } from '../groups/groups.service.ts'
import { listNodes } from '../groups/list-nodes.ts'
import { identityType } from '../identities/identities.model.ts'
import { identityExists } from '../identities/identities.service.ts'
import { consentFor } from './consent.service.ts'
import { keepAnOwner } from './owners.service.ts'
import {
  type HydratedBinding,
  maxBatch,
  type RoleBinding,
  roleBindingFields,
  roleBindingType,
  someBindings,
  toBindingResource,
} from './role-bindings.model.ts'
import * as store from './role-bindings.store.ts'
import type { Role } from './roles.model.ts'
import { requireGrantableRole, rolesByUid } from './roles.service.ts'

export type NewBinding = Pick<RoleBinding, 'identityUid' | 'roleUid'>

export async function getRoleBinding(call: Call, uid: string): Promise<HydratedBinding> {
  return found(await store.findBinding(call.app.db, uid), roleBindingType, uid)
}

export async function listRoleBindings(
  call: Call,
  query: ListQuery<store.BindingFilter>,
): Promise<Listed<HydratedBinding>> {
  for (const [field, uid] of Object.entries(query.filter)) {
    if (uid !== '' && !isUid(uid)) throw invalid({ field, description: 'is not a uid' })
  }
  return listNodes(call, query, store.bindingList)
}

export type FullBinding = { binding: HydratedBinding; group: Group | undefined; role: Role | undefined }

/** Adds the group and the role to each binding. They are undefined if they were deleted meanwhile. */
export async function withGroupsAndRoles(call: Call, bindings: readonly HydratedBinding[]): Promise<FullBinding[]> {
  const { db } = call.app
  const groupOf = await groupsByUid(
    db,
    bindings.map(({ uid }) => parentOf(uid)),
  )
  const roleUids = bindings.map(({ roleUid }) => roleUid)
  const roleOf = await rolesByUid(db, roleUids)
  return bindings.map((binding) => {
    return { binding, group: groupOf.get(parentOf(binding.uid)), role: roleOf.get(binding.roleUid) }
  })
}

/** Creates a binding. Throws PERMISSION_DENIED unless the caller holds all capabilities of the role. */
export async function createRoleBinding(call: Call, parent: string, input: NewBinding): Promise<HydratedBinding> {
  checkInput(parent, input)
  const binding = await call.app.db.tx(async (tx) => {
    const created = await insert(tx, call, parent, input)
    await emit(tx, call, 'iam.rolebindings.created', { subject: created.uid, resource: toBindingResource(created) })
    return created
  })
  call.log.info('role binding created', { uid: binding.uid })
  return binding
}

/**
 * Creates all bindings in the given order, or none. Emits one event for the batch. Its subject is the group, or the result of
 * `subjectOf`.
 */
export async function createRoleBindings(
  call: Call,
  parent: string,
  inputs: readonly NewBinding[],
  subjectOf: (created: readonly RoleBinding[]) => string = () => parent,
): Promise<HydratedBinding[]> {
  if (inputs.length === 0 || inputs.length > maxBatch) {
    throw invalid({ field: 'requests', description: `must have 1 to ${maxBatch} entries` })
  }
  for (const [i, input] of inputs.entries()) checkInput(parent, input, `requests[${i}].role_binding.`)
  const bindings = await call.app.db.tx(async (tx) => {
    const created: HydratedBinding[] = []
    for (const input of inputs) {
      const { identityUid, roleUid } = input
      if (created.some((one) => one.identityUid === identityUid && one.roleUid === roleUid)) {
        throw alreadyExists(roleBindingType, identityUid, 'the batch has two role bindings with this identity and role')
      }
      created.push(await insert(tx, call, parent, input))
    }
    const resource = someBindings(created)
    await emit(tx, call, 'iam.rolebindings.created.batch', { subject: subjectOf(created), group: parent, resource })
    return created
  })
  call.log.info('role bindings created', { group: parent, count: bindings.length })
  return bindings
}

export async function updateRoleBinding(call: Call, uid: string, patch: Patch<RoleBinding>): Promise<HydratedBinding> {
  const binding = await call.app.db.tx(async (tx) => {
    const before = found(await store.findBinding(tx, uid), roleBindingType, uid)
    const { identityUid, roleUid } = applyPatch<RoleBinding>(roleBindingFields, before, patch)
    const moved = identityUid !== before.identityUid
    if (moved || roleUid !== before.roleUid) {
      checkInput(parentOf(uid), { identityUid, roleUid })
      await checkGrantable(tx, call, parentOf(uid), { identityUid, roleUid })
      await keepAnOwner(tx, before)
      const other = await store.uidOfBinding(tx, parentOf(uid), { identityUid, roleUid })
      if (other !== '') throw alreadyBound(other)
    }
    const consent = moved ? await consentFor(tx, call, parentOf(uid), identityUid) : undefined
    await store.patchBinding(tx, before, { ...before, ...consent, identityUid, roleUid, updateTime: call.now })
    const after = (await store.findBinding(tx, uid))!
    await emit(tx, call, 'iam.rolebindings.updated', { subject: uid, resource: toBindingResource(after) })
    return after
  })
  call.log.info('role binding updated', { uid, paths: patch.paths })
  return binding
}

/** Deletes a binding. If the binding does not exist, does nothing and emits no event. */
export async function deleteRoleBinding(call: Call, uid: string): Promise<void> {
  const deleted = await call.app.db.tx(async (tx) => {
    const binding = await store.findBinding(tx, uid)
    if (!binding) return false
    await keepAnOwner(tx, binding)
    await store.deleteBinding(tx, binding)
    await emitDeleted(tx, call, 'iam.rolebindings.deleted', uid)
    return true
  })
  if (deleted) call.log.info('role binding deleted', { uid })
}

async function insert(tx: Tx, call: Call, parent: string, input: NewBinding): Promise<HydratedBinding> {
  await requireGroup(tx, parent)
  await checkGrantable(tx, call, parent, input)
  const uid = newUid(parent)
  const times = { createTime: call.now, updateTime: call.now }
  const consent = await consentFor(tx, call, parent, input.identityUid)
  if (!(await store.insertBinding(tx, { uid, ...input, ...consent, ...times }))) {
    throw alreadyBound(await store.uidOfBinding(tx, parent, input))
  }
  return (await store.findBinding(tx, uid))!
}

/** Checks the uids of a new binding without a query. `at` is the position of the binding in the request. */
function checkInput(group: string, { identityUid, roleUid }: NewBinding, at = ''): void {
  const problems: FieldViolation[] = []
  for (const [name, uid] of Object.entries({ identity_uid: identityUid, role_uid: roleUid })) {
    if (uid === '') problems.push({ field: at + name, description: 'is required' })
    else if (!isUid(uid)) problems.push({ field: at + name, description: 'is not a uid' })
  }
  if (isUid(identityUid) && !isAtOrBelow(group, parentOf(identityUid))) {
    const description = 'is an identity of another group; it can have roles only in its own group and below'
    problems.push({ field: `${at}identity_uid`, description })
  }
  refuseIfAny(problems)
}

async function checkGrantable(tx: Tx, call: Call, group: string, { identityUid, roleUid }: NewBinding): Promise<void> {
  await requireGrantableRole(tx, call, roleUid, group)
  // A person can get bindings before the first sign-in, since the uid of a person is known before.
  if (parentOf(identityUid) === top) return
  if (!(await identityExists(tx, identityUid))) throw notFound(identityType, identityUid)
}

function alreadyBound(uid: string): AppError {
  return alreadyExists(roleBindingType, uid, 'the identity already has this role on the group')
}
