// Version 1 of group mappings, in other names and with lists in full.
import type { Handlers } from '#app.ts'
import {
  type BatchDeleteExternalGroupRoleMappingsResponse,
  ExternalGroupRoleMappings,
  type ExternalGroupRoleMapping as MappingMessage,
} from '#gen/pinfold/iam/v1/external_group_role_mappings_pb.ts'
import { invalid, withFieldNames } from '#lib/errors.ts'
import { aDeletion, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { parentOf } from '#lib/uid.ts'
import { empty } from '#lib/wire.ts'
import {
  aGroupMapping,
  type GroupMapping,
  type GroupMappings,
  someGroupMappings,
} from './external-group-role-mappings.model.ts'
import * as service from './external-group-role-mappings.service.ts'

const inV1 = <T>(work: Promise<T>): Promise<T> =>
  withFieldNames({ role_uid: 'role_uidp', identity_provider_uid: 'identity_provider_uidp', names: 'ids' }, work)

export const externalGroupRoleMappingsV1: Handlers<typeof ExternalGroupRoleMappings> = {
  async create(call, { parentId, mapping }) {
    if (!mapping) throw invalid({ field: 'mapping', description: 'is required' })
    const { externalGroupId, roleUidp: roleUid, scope } = mapping
    return toMessage(await inV1(service.createGroupMapping(call, parentId, { externalGroupId, roleUid, scope })))
  },

  async get(call, { uid }) {
    return toMessage(await service.getGroupMapping(call, uid))
  },

  async list(call, { uidp, identityProviderUidp: provider }) {
    const mappings = await inV1(wholeList(call, { uidp, id: '' }, { provider }, service.listGroupMappings))
    return { $typeName: 'pinfold.platform.iam.ExternalGroupRoleMappingList', items: mappings.map(toMessage) }
  },

  async delete(call, { id }) {
    await service.deleteGroupMapping(call, id)
    return empty
  },

  async batchDelete(call, { parentId, ids }) {
    return toBatch({ parent: parentId, mappings: await inV1(service.deleteGroupMappings(call, parentId, ids)) })
  },
}

export const groupMappingEventsV1: readonly EventBody[] = [
  eventBody(ExternalGroupRoleMappings.method.create, aGroupMapping, toMessage),
  eventBody(ExternalGroupRoleMappings.method.delete, aDeletion, () => null),
  eventBody(ExternalGroupRoleMappings.method.batchDelete, someGroupMappings, toBatch),
]

function toMessage({ uid, externalGroupId, roleUid, scope, createTime }: GroupMapping): MappingMessage {
  return {
    $typeName: 'pinfold.platform.iam.ExternalGroupRoleMapping',
    id: uid,
    identityProviderUidp: parentOf(uid),
    externalGroupId,
    roleUidp: roleUid,
    scope,
    createdAt: timestamp(createTime),
  }
}

function toBatch({ parent, mappings }: GroupMappings): BatchDeleteExternalGroupRoleMappingsResponse {
  return {
    $typeName: 'pinfold.platform.iam.BatchDeleteExternalGroupRoleMappingsResponse',
    parentId: parent,
    items: mappings.map(toMessage),
  }
}
