// Version 1 of group mappings. It has other names and complete lists.
import type { Handlers } from '#app.ts'
import {
  type BatchDeleteExternalGroupRoleMappingsResponse,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappings,
  type ExternalGroupRoleMapping as MappingMessage,
} from '#gen/pinfold/iam/v1/external_group_role_mappings_pb.ts'
import { deleting, getting } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { withFieldNames } from '#lib/errors.ts'
import { type EventBody, eventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { parentOf } from '#lib/uid.ts'
import {
  type GroupMapping,
  type GroupMappings,
  someGroupMappings,
  toGroupMappingResource,
} from './external-group-role-mappings.model.ts'
import * as service from './external-group-role-mappings.service.ts'

const toMapping = messageOf(ExternalGroupRoleMappingSchema, { id: 'uid', roleUidp: 'roleUid', createdAt: 'createTime' })

const inV1 = <T>(work: Promise<T>): Promise<T> =>
  withFieldNames({ role_uid: 'role_uidp', identity_provider_uid: 'identity_provider_uidp', names: 'ids' }, work)

export const externalGroupRoleMappingsV1: Handlers<typeof ExternalGroupRoleMappings> = {
  async create(call, { parentId, mapping }) {
    const { externalGroupId, roleUidp: roleUid, scope } = required(mapping, 'mapping')
    return toMessage(await inV1(service.createGroupMapping(call, parentId, { externalGroupId, roleUid, scope })))
  },

  get: getting(service.getGroupMapping, toMessage),

  async list(call, { uidp, identityProviderUidp: provider }) {
    const mappings = await inV1(wholeList(call, { uidp, id: '' }, { provider }, service.listGroupMappings))
    return { $typeName: 'pinfold.platform.iam.ExternalGroupRoleMappingList', items: mappings.map(toMessage) }
  },

  delete: deleting('id', service.deleteGroupMapping),

  async batchDelete(call, { parentId, ids }) {
    return toBatch({ parent: parentId, mappings: await inV1(service.deleteGroupMappings(call, parentId, ids)) })
  },
}

export const groupMappingEventsV1: readonly EventBody[] = [
  eventBody(ExternalGroupRoleMappings.method.create, toGroupMappingResource, toMessage),
  eventBody(ExternalGroupRoleMappings.method.delete, toDeletionResource, () => null),
  eventBody(ExternalGroupRoleMappings.method.batchDelete, someGroupMappings, toBatch),
]

function toMessage(mapping: GroupMapping): MappingMessage {
  return toMapping({ ...mapping, identityProviderUidp: parentOf(mapping.uid) })
}

function toBatch({ parent, mappings }: GroupMappings): BatchDeleteExternalGroupRoleMappingsResponse {
  const $typeName = 'pinfold.platform.iam.BatchDeleteExternalGroupRoleMappingsResponse'
  return { $typeName, parentId: parent, items: mappings.map(toMessage) }
}
