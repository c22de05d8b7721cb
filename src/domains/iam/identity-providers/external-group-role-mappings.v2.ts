import type { Handlers } from '#app.ts'
import {
  BatchDeleteExternalGroupRoleMappingsResponseSchema,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappingsService,
  type ExternalGroupRoleMapping as MappingMessage,
} from '#gen/pinfold/iam/v2/external_group_role_mappings_pb.ts'
import { creating, deleting, getting, listing } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { parentOf } from '#lib/uid.ts'
import {
  type GroupMapping,
  type GroupMappings,
  groupMappingFields,
  someGroupMappings,
  toGroupMappingResource,
} from './external-group-role-mappings.model.ts'
import * as service from './external-group-role-mappings.service.ts'

const { method } = ExternalGroupRoleMappingsService
const rules = { fields: groupMappingFields, defaultOrder: 'uid' }
const toMapping = messageOf(ExternalGroupRoleMappingSchema)
const toMappings = messageOf(BatchDeleteExternalGroupRoleMappingsResponseSchema)

export const externalGroupRoleMappings: Handlers<typeof ExternalGroupRoleMappingsService> = {
  getExternalGroupRoleMapping: getting(service.getGroupMapping, toMessage),
  listExternalGroupRoleMappings: listing(
    method.listExternalGroupRoleMappings,
    rules,
    ({ identityProviderUid: provider }) => ({ provider }),
    service.listGroupMappings,
    toMessage,
  ),
  createExternalGroupRoleMapping: creating(
    ['parent', 'externalGroupRoleMapping'],
    fromMessage,
    service.createGroupMapping,
    toMessage,
  ),
  deleteExternalGroupRoleMapping: deleting('uid', service.deleteGroupMapping),

  async batchDeleteExternalGroupRoleMappings(call, { parent, names }) {
    return toBatch({ parent, mappings: await service.deleteGroupMappings(call, parent, names) })
  },
}

export const groupMappingEvents: readonly EventBody[] = [
  eventBody(method.createExternalGroupRoleMapping, toGroupMappingResource, toMessage),
  deletionBody(method.deleteExternalGroupRoleMapping),
  eventBody(method.batchDeleteExternalGroupRoleMappings, someGroupMappings, toBatch),
]

function fromMessage(mapping: MappingMessage | undefined): service.NewMapping {
  return contentOf(mapping, 'external_group_role_mapping', 'externalGroupId', 'roleUid', 'scope')
}

function toMessage(mapping: GroupMapping): MappingMessage {
  return toMapping({ ...mapping, identityProviderUid: parentOf(mapping.uid), updateTime: mapping.createTime })
}

function toBatch({ parent, mappings }: GroupMappings) {
  return toMappings({ parent, externalGroupRoleMappings: mappings.map(toMessage) })
}
