import type { Handlers } from '#app.ts'
import {
  BatchCreateRoleBindingsResponseSchema,
  type ListRoleBindingsRequest,
  type RoleBinding as RoleBindingMessage,
  RoleBindingSchema,
  RoleBindingsService,
} from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import { creating, deleting, getting, listing, updating } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { roleBindingFields, someBindings, toBindingResource } from './role-bindings.model.ts'
import * as service from './role-bindings.service.ts'

const { method } = RoleBindingsService
const rules = { fields: roleBindingFields, defaultOrder: 'uid' }
const toMessage = messageOf(RoleBindingSchema)
const toBatch = messageOf(BatchCreateRoleBindingsResponseSchema)
const filterOf = ({ identity, group, role }: ListRoleBindingsRequest) => ({ identity, group, role })

export const roleBindings: Handlers<typeof RoleBindingsService> = {
  getRoleBinding: getting(service.getRoleBinding, toMessage),
  listRoleBindings: listing(method.listRoleBindings, rules, filterOf, service.listRoleBindings, toMessage),
  createRoleBinding: creating(['parent', 'roleBinding'], fromMessage, service.createRoleBinding, toMessage),
  updateRoleBinding: updating('roleBinding', fromMessage, service.updateRoleBinding, toMessage),
  deleteRoleBinding: deleting('uid', service.deleteRoleBinding),

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
    return toBatch({ roleBindings: await service.createRoleBindings(call, parent, inputs) })
  },
}

export const roleBindingEvents: readonly EventBody[] = [
  eventBody(method.createRoleBinding, toBindingResource, toMessage),
  eventBody(method.batchCreateRoleBindings, someBindings, (created) => toBatch({ roleBindings: created })),
  eventBody(method.updateRoleBinding, toBindingResource, toMessage),
  deletionBody(method.deleteRoleBinding),
]

function fromMessage(binding: RoleBindingMessage | undefined, field = 'role_binding') {
  return contentOf(binding, field, 'identityUid', 'roleUid')
}
