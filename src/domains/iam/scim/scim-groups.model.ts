import { kindOf } from '#lib/events/event-body.ts'
import type { ScimResource } from './scim-users.model.ts'

export type ScimGroupInput = {
  displayName: string
  /** External ID. Empty for none. */
  externalId: string
  /** SCIM resource as sent by the provider, without its members. */
  resource: ScimResource
}

/** Group that an identity provider has provisioned over SCIM. */
export type ScimGroup = ScimGroupInput & {
  /** UUID of the group. */
  id: string
  provider: string
  /** Increases with each change of the group or its members. */
  revision: number
  createTime: string
  updateTime: string
}

/** Member of a group. */
export type ScimMember = { id: string; userName: string }

/** Group of a person. */
export type GroupOfUser = { id: string; displayName: string }

/** Change of a member list. `add` and `remove` have some IDs; `set` has the complete list. */
export type MemberChange = { op: 'add' | 'remove' | 'set'; ids: readonly string[] }

export type ScimGroupChange = { input: ScimGroupInput; members: readonly MemberChange[] }

export const scimGroupType = 'iam.pinfold.dev/ScimGroup'

/** Most groups of a provider, members of a group, groups of a person, and members in a request. */
export const scimGroupLimits = { groups: 1000, members: 10_000, ofPerson: 200, perRequest: 1000 }

/** Group after a change: the number of its members, and the IDs of added and removed members. */
export type ChangedGroup = {
  group: ScimGroup
  members: number
  added: readonly string[]
  removed: readonly string[]
}

export const toScimGroupResource = kindOf<ChangedGroup>('scimGroup')

/**
 * Name of a group in group mappings. It is the external ID, which the tokens of such providers contain. Without an external ID,
 * it is the display name.
 */
export function groupKeyOf({ displayName, externalId }: Pick<ScimGroupInput, 'displayName' | 'externalId'>): string {
  return externalId === '' ? displayName : externalId
}

export function versionOfGroup({ revision }: Pick<ScimGroup, 'revision'>): string {
  return `W/"${revision}"`
}
