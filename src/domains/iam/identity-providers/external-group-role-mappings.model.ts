import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Grants a role to the members of an external group, in their sessions. A group mapping is never updated. */
export type GroupMapping = {
  /** Uid, below the uid of the identity provider. */
  uid: string
  /** Name or ID of the external group, spelled as in the groups claim. */
  externalGroupId: string
  roleUid: string
  /** Group on which the role is granted. Currently always the organization of the provider. */
  scope: string
  createTime: string
}

export const toGroupMappingResource = kindOf<GroupMapping>('mapping')
/** Some group mappings of one identity provider, which is their parent. */
export type GroupMappings = { parent: string; mappings: readonly GroupMapping[] }
export const someGroupMappings = kindOf<GroupMappings>('mappings')

export const groupMappingType = 'iam.pinfold.dev/ExternalGroupRoleMapping'

export const groupMappingFields = {
  uid: { column: 'uid', sort: true },
  externalGroupId: { column: 'external_group_id', required: true, maxLength: 512 },
  roleUid: { column: 'role_uid', required: true },
  scope: { column: 'scope', required: true },
  createTime: { column: 'create_time', sort: true },
  // Group mappings are never updated, so the update time is the creation time.
  updateTime: { column: 'create_time', sort: true },
} as const satisfies Fields<GroupMapping & { updateTime: string }>

/** Most group mappings that one call can delete. */
export const maxMappingBatch = 100
