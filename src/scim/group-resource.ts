// Conversion of SCIM groups (RFC 7643, 4.2), and of requests that change groups. Members are stored separately from the other
// attributes.

import { endpointOf } from '#domains/iam/identity-providers/scim-settings.model.ts'
import {
  type MemberChange,
  type ScimGroup,
  type ScimGroupInput,
  type ScimMember,
  scimGroupLimits,
  versionOfGroup,
} from '#domains/iam/scim/scim-groups.model.ts'
import type { ScimResource } from '#domains/iam/scim/scim-users.model.ts'
import { wrong } from './errors.ts'
import { groupKind } from './kinds.ts'
import { groupSchema, isObject, isSameName, type Json, keyOf } from './names.ts'
import { applyOperations, changesOf, memberOf, type Operation, readOperations } from './patch.ts'
import { attributesToStore, checkSize, textOf, withPrevious } from './resource.ts'

/** Reads the attributes of a group, without its members. */
export function readGroup(given: Json): ScimGroupInput {
  const kept = attributesToStore(given, groupKind)
  const resource = Object.fromEntries(Object.entries(kept).filter(([name]) => !isMembers(name)))
  const input = { displayName: textOf(resource, 'displayName'), externalId: textOf(resource, 'externalId') }
  if (input.displayName.trim() === '') throw wrong('invalidValue', 'displayName: is required')
  checkSize(resource)
  return { ...input, resource }
}

/** Replaces the attributes of a group. If the request omits the external ID, the previous one is kept. */
export function replaceGroup(before: ScimResource, given: Json): ScimGroupInput {
  return readGroup(withPrevious(before, given, ['externalId']))
}

/** Members in the body of a POST or PUT. Without `members`, the group has none. */
export function readMembers(given: Json): MemberChange {
  const value = given[keyOf(given, 'members') ?? ''] ?? []
  const change: MemberChange = { op: 'set', ids: idsOf(value) }
  checkCount([change])
  return change
}

export type GroupPatch = {
  members: readonly MemberChange[]
  apply: (before: ScimResource, id: string) => ScimGroupInput
}

/** Reads the operations of a PATCH. Operations on members are separated from operations on other attributes. */
export function readGroupPatch(body: unknown): GroupPatch {
  const operations = readOperations(body, groupKind)
  const ofMembers = operations.filter(isOnMembers)
  const others = operations.filter((one) => !isOnMembers(one))
  const members = ofMembers.map(changeOf)
  checkCount(members)
  const apply = (before: ScimResource, id: string) => {
    const changes = changesOf(others, { id, kind: groupKind, alsoChanges: members.length > 0 })
    return readGroup(applyOperations(before, changes, groupKind))
  }
  return { members, apply }
}

const isMembers = (name: string) => isSameName(name, 'members')

function isOnMembers({ path }: Operation): boolean {
  return path.schema === undefined && isMembers(path.attribute)
}

function changeOf({ op, path, value }: Operation): MemberChange {
  if (path.member !== undefined)
    throw wrong('mutability', 'members: the attributes of a member cannot be changed; add or remove the whole member')
  if (path.filter) return { op: 'remove', ids: [pickedBy(path.filter, op)] }
  if (op === 'remove') {
    // Entra ID sends the members to remove as the value. Without a value, all members are removed (RFC 7644, 3.5.2.2).
    if (value === undefined || value === null) return { op: 'set', ids: [] }
    const ids = idsOf(value)
    if (ids.length === 0)
      throw wrong(
        'invalidValue',
        'members: the value must not be an empty list; to remove all members, leave out the value',
      )
    return { op: 'remove', ids }
  }
  if (op === 'add' && value === null) throw wrong('invalidValue', 'members: must be a list')
  return { op: op === 'add' ? 'add' : 'set', ids: idsOf(value ?? []) }
}

function pickedBy({ member, value }: NonNullable<Operation['path']['filter']>, op: Operation['op']): string {
  if (op !== 'remove') throw wrong('mutability', 'members: a filter is only allowed to remove members')
  if (!isSameName(member, 'value') || typeof value !== 'string') {
    throw wrong('invalidPath', 'members: a filter must be of the form members[value eq "…"]')
  }
  return value
}

/** IDs of members. Each member is an object whose `value` is the ID of a person. Some clients send the ID without the object. */
function idsOf(value: unknown): string[] {
  return [value].flat().map((one): string => {
    const id = isObject(one) ? memberOf(one, 'value') : one
    const type = isObject(one) ? (memberOf(one, 'type') ?? 'User') : 'User'
    if (typeof type !== 'string' || !isSameName(type, 'User')) {
      throw wrong('invalidValue', 'members: must be users; nested groups are not supported')
    }
    if (typeof id !== 'string' || id === '') throw wrong('invalidValue', 'members: each must have a value')
    return id
  })
}

function checkCount(changes: readonly MemberChange[]): void {
  const count = changes.reduce((sum, { ids }) => sum + ids.length, 0)
  const { perRequest } = scimGroupLimits
  if (count > perRequest) throw wrong('tooMany', `members: a request must have at most ${perRequest} members`)
}

/** SCIM resource of a group, as returned to the identity provider. */
export function groupResourceOf(group: ScimGroup, members: readonly ScimMember[], url: string): ScimResource {
  const { id, provider, resource, createTime, updateTime } = group
  return {
    ...resource,
    schemas: Array.isArray(resource.schemas) ? resource.schemas : [groupSchema],
    id,
    members: members.map((one) => ({ value: one.id, display: one.userName, type: 'User' })),
    meta: {
      resourceType: 'Group',
      created: createTime,
      lastModified: updateTime,
      location: `${endpointOf(url, provider)}/Groups/${id}`,
      version: versionOfGroup(group),
    },
  }
}
