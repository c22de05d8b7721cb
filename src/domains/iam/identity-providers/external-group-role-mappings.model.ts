import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Gives a role, for one session, to whoever the identity provider reports in an external group. Never changes. */
export type GroupMapping = {
  /** Its parent is the identity provider. */
  uid: string
  /** As the groups claim spells it. */
  externalGroupId: string
  roleUid: string
  /** The organisation of the identity provider, for now. */
  scope: string
  createTime: string
}

export const aGroupMapping = kindOf<GroupMapping>('mapping')
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
  // It never changes, so both times are one.
  updateTime: { column: 'create_time', sort: true },
} as const satisfies Fields<GroupMapping & { updateTime: string }>

/** How many mappings one call may delete. */
export const maxMappingBatch = 100
