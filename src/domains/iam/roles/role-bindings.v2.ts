import type { Handlers } from '#app.ts'
import {
  type BatchCreateRoleBindingsResponse,
  type RoleBinding as RoleBindingMessage,
  RoleBindingsService,
} from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { aBinding, type HydratedBinding, roleBindingFields, someBindings } from './role-bindings.model.ts'
import * as service from './role-bindings.service.ts'

const rules = { fields: roleBindingFields, defaultOrder: 'uid' }

export const roleBindings: Handlers<typeof RoleBindingsService> = {
  async getRoleBinding(call, { uid }) {
    return toMessage(await service.getRoleBinding(call, uid))
  },

  async listRoleBindings(call, request) {
    const { identity, group, role } = request
    const listed = await service.listRoleBindings(call, readList(call, request, rules, { identity, group, role }))
    return listResponse('pinfold.platform.iam.v2.ListRoleBindingsResponse', 'roleBindings', listed, toMessage, request)
  },

  async createRoleBinding(call, { parent, roleBinding }) {
    return toMessage(await service.createRoleBinding(call, parent, fromMessage(roleBinding)))
  },

  async batchCreateRoleBindings(call, { parent, requests, roleUid }) {
    const inputs = requests.map((entry, i) => {
      const at = `requests[${i}]`
      if (entry.parent !== '' && entry.parent !== parent) {
        throw invalid({ field: `${at}.parent`, description: 'must be empty or the parent of the batch' })
      }
      const binding = fromMessage(entry.roleBinding, `${at}.role_binding`)
      if (roleUid !== '' && binding.roleUid !== '' && binding.roleUid !== roleUid) {
        throw invalid({ field: `${at}.role_binding.role_uid`, description: 'differs from the role_uid of the batch' })
      }
      return { identityUid: binding.identityUid, roleUid: binding.roleUid || roleUid }
    })
    return toBatch(await service.createRoleBindings(call, parent, inputs))
  },

  async updateRoleBinding(call, { roleBinding, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(roleBinding) }
    return toMessage(await service.updateRoleBinding(call, roleBinding?.uid ?? '', patch))
  },

  async deleteRoleBinding(call, { uid }) {
    await service.deleteRoleBinding(call, uid)
    return empty
  },
}

export const roleBindingEvents: readonly EventBody[] = [
  eventBody(RoleBindingsService.method.createRoleBinding, aBinding, toMessage),
  eventBody(RoleBindingsService.method.batchCreateRoleBindings, someBindings, toBatch),
  eventBody(RoleBindingsService.method.updateRoleBinding, aBinding, toMessage),
  deletionBody(RoleBindingsService.method.deleteRoleBinding),
]

function fromMessage(binding: RoleBindingMessage | undefined, field = 'role_binding') {
  if (!binding) throw invalid({ field, description: 'is required' })
  return { identityUid: binding.identityUid, roleUid: binding.roleUid }
}

function toMessage(binding: HydratedBinding): RoleBindingMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.RoleBinding',
    uid: binding.uid,
    identity: { $typeName: 'pinfold.platform.iam.v2.RoleBindingIdentity', ...binding.identity },
    group: { $typeName: 'pinfold.platform.iam.v2.RoleBindingGroup', ...binding.group },
    role: { $typeName: 'pinfold.platform.iam.v2.RoleBindingRole', ...binding.role },
    createTime: timestamp(binding.createTime),
    identityUid: binding.identityUid,
    roleUid: binding.roleUid,
    updateTime: timestamp(binding.updateTime),
  }
}

function toBatch(created: readonly HydratedBinding[]): BatchCreateRoleBindingsResponse {
  return {
    $typeName: 'pinfold.platform.iam.v2.BatchCreateRoleBindingsResponse',
    roleBindings: created.map(toMessage),
  }
}
