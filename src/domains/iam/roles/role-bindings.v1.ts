// Version 1 of role bindings. Only lists include details of identity, group and role. The event of a batch contains all created
// bindings.
import type { Handlers } from '#app.ts'
import {
  type RoleBindingBatch,
  type RoleBindingList_Binding,
  RoleBindingList_BindingSchema,
  type RoleBinding as RoleBindingMessage,
  RoleBindingSchema,
  RoleBindings,
} from '#gen/pinfold/iam/v1/role_bindings_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { withFieldNames } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { parentOf } from '#lib/uid.ts'
import { groupToV1 } from '../groups/groups.v1.ts'
import { type RoleBinding, someBindings, toBindingResource } from './role-bindings.model.ts'
import * as service from './role-bindings.service.ts'
import { roleToV1 } from './roles.v1.ts'

const replaced = ['identity_uid', 'role_uid']
const toBinding = messageOf(RoleBindingSchema, { id: 'uid', identity: 'identityUid', role: 'roleUid' })
const toListed = messageOf(RoleBindingList_BindingSchema, {
  id: 'uid',
  claimMatchIssuer: 'issuer',
  claimMatchSubject: 'subject',
  createdAt: 'createTime',
})
const everyone = { identity: '', group: '', role: '' }

const inV1 = <T>(work: Promise<T>): Promise<T> =>
  withFieldNames({ identity_uid: 'identity', role_uid: 'role', requests: 'role_bindings', role_binding: '' }, work)

export const roleBindingsV1: Handlers<typeof RoleBindings> = {
  async create(call, { parent, roleBinding }) {
    return toMessage(await inV1(service.createRoleBinding(call, parent, fromMessage(roleBinding))))
  },

  async createBatch(call, { parent, roleBindings }) {
    const inputs = roleBindings.map(fromMessage)
    const subjectOf = (created: readonly RoleBinding[]) => created.map(({ uid }) => uid).join(',')
    return toBatch(await inV1(service.createRoleBindings(call, parent, inputs, subjectOf)))
  },

  async update(call, binding) {
    const patch = { paths: replaced, value: fromMessage(binding) }
    return toMessage(await inV1(service.updateRoleBinding(call, binding.id, patch)))
  },

  async list(call, { id, uidp }) {
    const bindings = await wholeList(call, { uidp, id }, everyone, service.listRoleBindings)
    const items = (await service.withGroupsAndRoles(call, bindings)).map(listed)
    return { $typeName: 'pinfold.platform.iam.RoleBindingList', items }
  },

  delete: deleting('id', service.deleteRoleBinding),
}

export const roleBindingEventsV1: readonly EventBody[] = [
  eventBody(RoleBindings.method.create, toBindingResource, toMessage),
  eventBody(RoleBindings.method.createBatch, someBindings, toBatch),
  eventBody(RoleBindings.method.update, toBindingResource, toMessage),
  deletionBody(RoleBindings.method.delete),
]

function fromMessage(binding: RoleBindingMessage | undefined) {
  const { identity: identityUid, role: roleUid } = contentOf(binding, 'role_binding', 'identity', 'role')
  return { identityUid, roleUid }
}

function toMessage(binding: RoleBinding): RoleBindingMessage {
  return toBinding({ ...binding, group: parentOf(binding.uid) })
}

function toBatch(created: readonly RoleBinding[]): RoleBindingBatch {
  return { $typeName: 'pinfold.platform.iam.RoleBindingBatch', roleBindings: created.map(toMessage) }
}

function listed({ binding, group, role }: service.FullBinding): RoleBindingList_Binding {
  const { identity, uid, createTime } = binding
  const shown = { group: group && groupToV1(group), role: role && roleToV1(role) }
  return toListed({ ...identity, identity: identity.uid, ...shown, uid, createTime })
}
