// Version 1 of roles. It has dotted names of capabilities, complete lists, and a PUT that replaces roles.
import type { Handlers } from '#app.ts'
import { type RoleFilter, type Role as RoleMessage, RoleSchema, Roles } from '#gen/pinfold/iam/v1/roles_pb.ts'
import { creating, deleting, replacing } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { everywhere, type UidpFilter, wholeList } from '#lib/lists/lists.ts'
import { isUid, top } from '#lib/uid.ts'
import { capabilities, grantableNumbers } from '../access/capabilities.ts'
import { type Role, toRoleResource } from './roles.model.ts'
import * as service from './roles.service.ts'

const replaced = ['name', 'description', 'capabilities']

export const rolesV1: Handlers<typeof Roles> = {
  create: creating(['parentId', 'role'], fromMessage, service.createRole, roleToV1),
  update: replacing(replaced, fromMessage, service.updateRole, roleToV1),
  delete: deleting('id', service.deleteRole),

  async list(call, filter) {
    const uidp = scopeOf(filter)
    const { id, name } = filter
    const roles = uidp === 'nowhere' ? [] : await wholeList(call, { uidp, id }, { name }, service.listRoles)
    return { $typeName: 'pinfold.platform.iam.RoleList', items: roles.map(roleToV1) }
  },
}

export const roleEventsV1: readonly EventBody[] = [
  eventBody(Roles.method.create, toRoleResource, roleToV1),
  eventBody(Roles.method.update, toRoleResource, roleToV1),
  deletionBody(Roles.method.delete),
]

/** Scope of a list. `parent` limits the filter `uidp` to the roles of a group, or for `/` to built-in roles. */
function scopeOf({ parent, uidp }: RoleFilter): UidpFilter | undefined | 'nowhere' {
  if (parent === '') return uidp
  if (parent === top) return { ...everywhere, ...uidp, inRoot: true }
  if (!isUid(parent)) throw invalid({ field: 'parent', description: 'must be a uid or /' })
  if (uidp && uidp.childrenOf !== '' && uidp.childrenOf !== parent) return 'nowhere'
  return { ...everywhere, ...uidp, childrenOf: parent }
}

function fromMessage(message: RoleMessage | undefined) {
  const role = contentOf(message, 'role', 'name', 'description', 'capabilities')
  return { ...role, capabilities: grantableNumbers(role.capabilities) }
}

const toMessage = messageOf(RoleSchema, { id: 'uid' })

/** Converts a role to its message in version 1. Other messages contain this message too. */
export function roleToV1(role: Pick<Role, 'uid' | 'name' | 'description' | 'capabilities'>): RoleMessage {
  return toMessage({ ...role, capabilities: role.capabilities.flatMap((one) => capabilities.get(one)?.name ?? []) })
}
