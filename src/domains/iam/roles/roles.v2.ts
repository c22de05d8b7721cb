import type { Handlers } from '#app.ts'
import { type Role as RoleMessage, RolesService } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { aRole, type Role, roleFields } from './roles.model.ts'
import * as service from './roles.service.ts'

const rules = { fields: roleFields, defaultOrder: 'uid' }

export const roles: Handlers<typeof RolesService> = {
  async getRole(call, { uid }) {
    return toMessage(await service.getRole(call, uid))
  },

  async listRoles(call, request) {
    const { name } = request
    const listed = await service.listRoles(call, readList(call, request, rules, { name }))
    return listResponse('pinfold.platform.iam.v2.ListRolesResponse', 'roles', listed, toMessage, request)
  },

  async createRole(call, { parent, role }) {
    return toMessage(await service.createRole(call, parent, fromMessage(role)))
  },

  async updateRole(call, { role, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(role) }
    return toMessage(await service.updateRole(call, role?.uid ?? '', patch))
  },

  async deleteRole(call, { uid }) {
    await service.deleteRole(call, uid)
    return empty
  },
}

export const roleEvents: readonly EventBody[] = [
  eventBody(RolesService.method.createRole, aRole, toMessage),
  eventBody(RolesService.method.updateRole, aRole, toMessage),
  deletionBody(RolesService.method.deleteRole),
]

function fromMessage(role: RoleMessage | undefined) {
  if (!role) throw invalid({ field: 'role', description: 'is required' })
  const { name, description, capabilities } = role
  return { name, description, capabilities }
}

function toMessage(role: Role): RoleMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.Role',
    uid: role.uid,
    name: role.name,
    description: role.description,
    capabilities: [...role.capabilities] as RoleMessage['capabilities'],
    createTime: timestamp(role.createTime),
    updateTime: timestamp(role.updateTime),
  }
}
