import { kindOf } from '#lib/events/event-body.ts'
import type { ScimResource } from './scim-users.model.ts'

export type ScimGroupInput = {
  displayName: string
  /** Empty for none. */
  externalId: string
  /** The group as the provider has sent it, without its members. */
  resource: ScimResource
}

/** A group that an identity provider has pushed. */
export type ScimGroup = ScimGroupInput & {
  /** A UUID. */
  id: string
  provider: string
  /** Another one after each change, also of the members. */
  revision: number
  createTime: string
  updateTime: string
}

/** A person in a group. */
export type ScimMember = { id: string; userName: string }

/** A group that a person is in. */
export type GroupOfUser = { id: string; displayName: string }

/** Ids of people to add or to remove, or the ids that all members shall have. */
export type MemberChange = { op: 'add' | 'remove' | 'set'; ids: readonly string[] }

export type ScimGroupChange = { input: ScimGroupInput; members: readonly MemberChange[] }

export const scimGroupType = 'iam.pinfold.dev/ScimGroup'

/** Limits of one provider, of one group, of one person, and of one request. */
export const scimGroupLimits = { groups: 1000, members: 10_000, ofPerson: 200, perRequest: 1000 }

/** A group with the change of its members: how many there are now, and the ids of those who were added and removed. */
export type ChangedGroup = {
  group: ScimGroup
  members: number
  added: readonly string[]
  removed: readonly string[]
}

export const aScimGroup = kindOf<ChangedGroup>('scimGroup')

/** The name that role mappings know a group by: tokens of a provider that sends external ids name these. */
export function groupKeyOf({ displayName, externalId }: Pick<ScimGroupInput, 'displayName' | 'externalId'>): string {
  return externalId === '' ? displayName : externalId
}

export function versionOfGroup({ revision }: Pick<ScimGroup, 'revision'>): string {
  return `W/"${revision}"`
}
