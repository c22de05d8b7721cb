import type { Handlers } from '#app.ts'
import {
  type BatchDeleteExternalGroupRoleMappingsResponse,
  ExternalGroupRoleMappingsService,
  type ExternalGroupRoleMapping as MappingMessage,
} from '#gen/pinfold/iam/v2/external_group_role_mappings_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { parentOf } from '#lib/uid.ts'
import { empty } from '#lib/wire.ts'
import {
  aGroupMapping,
  type GroupMapping,
  type GroupMappings,
  groupMappingFields,
  someGroupMappings,
} from './external-group-role-mappings.model.ts'
import * as service from './external-group-role-mappings.service.ts'

const rules = { fields: groupMappingFields, defaultOrder: 'uid' }

export const externalGroupRoleMappings: Handlers<typeof ExternalGroupRoleMappingsService> = {
  async getExternalGroupRoleMapping(call, { uid }) {
    return toMessage(await service.getGroupMapping(call, uid))
  },

  async listExternalGroupRoleMappings(call, request) {
    const { identityProviderUid: provider } = request
    const listed = await service.listGroupMappings(call, readList(call, request, rules, { provider }))
    return listResponse(
      'pinfold.platform.iam.v2.ListExternalGroupRoleMappingsResponse',
      'externalGroupRoleMappings',
      listed,
      toMessage,
      request,
    )
  },

  async createExternalGroupRoleMapping(call, { parent, externalGroupRoleMapping: mapping }) {
    if (!mapping) throw invalid({ field: 'external_group_role_mapping', description: 'is required' })
    const { externalGroupId, roleUid, scope } = mapping
    return toMessage(await service.createGroupMapping(call, parent, { externalGroupId, roleUid, scope }))
  },

  async deleteExternalGroupRoleMapping(call, { uid }) {
    await service.deleteGroupMapping(call, uid)
    return empty
  },

  async batchDeleteExternalGroupRoleMappings(call, { parent, names }) {
    return toBatch({ parent, mappings: await service.deleteGroupMappings(call, parent, names) })
  },
}

export const groupMappingEvents: readonly EventBody[] = [
  eventBody(ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping, aGroupMapping, toMessage),
  deletionBody(ExternalGroupRoleMappingsService.method.deleteExternalGroupRoleMapping),
  eventBody(ExternalGroupRoleMappingsService.method.batchDeleteExternalGroupRoleMappings, someGroupMappings, toBatch),
]

function toMessage(mapping: GroupMapping): MappingMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.ExternalGroupRoleMapping',
    uid: mapping.uid,
    identityProviderUid: parentOf(mapping.uid),
    externalGroupId: mapping.externalGroupId,
    roleUid: mapping.roleUid,
    scope: mapping.scope,
    createTime: timestamp(mapping.createTime),
    updateTime: timestamp(mapping.createTime),
  }
}

function toBatch({ parent, mappings }: GroupMappings): BatchDeleteExternalGroupRoleMappingsResponse {
  return {
    $typeName: 'pinfold.platform.iam.v2.BatchDeleteExternalGroupRoleMappingsResponse',
    parent,
    externalGroupRoleMappings: mappings.map(toMessage),
  }
}
