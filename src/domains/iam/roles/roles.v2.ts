import type { Handlers } from '#app.ts'
import { type Role as RoleMessage, RoleSchema, RolesService } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { creating, deleting, getting, listing, updating } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { roleFields, toRoleResource } from './roles.model.ts'
import * as service from './roles.service.ts'

const { method } = RolesService
const rules = { fields: roleFields, defaultOrder: 'uid' }
const toMessage = messageOf(RoleSchema)

export const roles: Handlers<typeof RolesService> = {
  getRole: getting(service.getRole, toMessage),
  listRoles: listing(method.listRoles, rules, ({ name }) => ({ name }), service.listRoles, toMessage),
  createRole: creating(['parent', 'role'], fromMessage, service.createRole, toMessage),
  updateRole: updating('role', fromMessage, service.updateRole, toMessage),
  deleteRole: deleting('uid', service.deleteRole),
}

export const roleEvents: readonly EventBody[] = [
  eventBody(method.createRole, toRoleResource, toMessage),
  eventBody(method.updateRole, toRoleResource, toMessage),
  deletionBody(method.deleteRole),
]

function fromMessage(role: RoleMessage | undefined) {
  return contentOf(role, 'role', 'name', 'description', 'capabilities')
}
