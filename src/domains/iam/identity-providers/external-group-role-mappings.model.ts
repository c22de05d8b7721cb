import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Maps an external group to a role. Members of the group have the role during a session. A mapping never changes. */
export type GroupMapping = {
  /** Its parent is the identity provider. */
  uid: string
  /** Spelled as in the groups claim. */
  externalGroupId: string
  roleUid: string
  /** At present always the organization of the identity provider. */
  scope: string
  createTime: string
}

export const toGroupMappingResource = kindOf<GroupMapping>('mapping')
/** Some of the mappings of one identity provider, which is their parent. */
export type GroupMappings = { parent: string; mappings: readonly GroupMapping[] }
export const someGroupMappings = kindOf<GroupMappings>('mappings')

export const groupMappingType = 'iam.pinfold.dev/ExternalGroupRoleMapping'

export const groupMappingFields = {
  uid: { column: 'uid', sort: true },
  externalGroupId: { column: 'external_group_id', required: true, maxLength: 512 },
  roleUid: { column: 'role_uid', required: true },
  scope: { column: 'scope', required: true },
  createTime: { column: 'create_time', sort: true },
  // A mapping never changes, so both times are the same.
  updateTime: { column: 'create_time', sort: true },
} as const satisfies Fields<GroupMapping & { updateTime: string }>

/** Most mappings that one call can delete. */
export const maxMappingBatch = 100
