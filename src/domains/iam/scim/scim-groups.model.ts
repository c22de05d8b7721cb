import { kindOf } from '#lib/events/event-body.ts'
import type { ScimResource } from './scim-users.model.ts'

export type ScimGroupInput = {
  displayName: string
  /** Empty for none. */
  externalId: string
  /** The group as sent by the provider, without its members. */
  resource: ScimResource
}

/** A group that an identity provider has pushed. */
export type ScimGroup = ScimGroupInput & {
  /** A UUID. */
  id: string
  provider: string
  /** Grows with each change, also of the members. */
  revision: number
  createTime: string
  updateTime: string
}

/** A person in a group. */
export type ScimMember = { id: string; userName: string }

/** A group that a person is in. */
export type GroupOfUser = { id: string; displayName: string }

/** IDs of people to add or to remove, or the complete list of members. */
export type MemberChange = { op: 'add' | 'remove' | 'set'; ids: readonly string[] }

export type ScimGroupChange = { input: ScimGroupInput; members: readonly MemberChange[] }

export const scimGroupType = 'iam.pinfold.dev/ScimGroup'

/** Limits of one provider, of one group, of one person, and of one request. */
export const scimGroupLimits = { groups: 1000, members: 10_000, ofPerson: 200, perRequest: 1000 }

/** A group with the change of its members: their present number, and the IDs of added and removed members. */
export type ChangedGroup = {
  group: ScimGroup
  members: number
  added: readonly string[]
  removed: readonly string[]
}

export const toScimGroupResource = kindOf<ChangedGroup>('scimGroup')

/** Name of a group in role mappings: the external ID, which tokens of such providers have, or else the display name. */
export function groupKeyOf({ displayName, externalId }: Pick<ScimGroupInput, 'displayName' | 'externalId'>): string {
  return externalId === '' ? displayName : externalId
}

export function versionOfGroup({ revision }: Pick<ScimGroup, 'revision'>): string {
  return `W/"${revision}"`
}
