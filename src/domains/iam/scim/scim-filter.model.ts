// Parsed filters of SCIM (RFC 7644, 3.4.2.2): conditions on attributes that have a column.

/**
 * Attributes of people and groups that filters can use. A condition on `emails` or `members` applies to a single entry of the
 * list.
 */
export type FilterAttribute =
  | 'id'
  | 'userName'
  | 'externalId'
  | 'active'
  | 'meta.created'
  | 'meta.lastModified'
  | 'emails.value'
  | 'emails.type'
  | 'emails.primary'
  | 'displayName'
  | 'members.value'

export type Comparison = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le' | 'pr'

export type ScimFilter =
  | { kind: 'and' | 'or'; parts: readonly ScimFilter[] }
  | { kind: 'not'; part: ScimFilter }
  /** True if a single address or member meets the whole `part`. */
  | { kind: 'item'; part: ScimFilter }
  | { kind: 'compare'; attribute: FilterAttribute; op: Comparison; value: string | boolean }

/** True if a filter of people has a condition on email addresses. */
export function asksForEmails(filter: ScimFilter): boolean {
  if (filter.kind === 'compare') return false
  return filter.kind === 'item' || (filter.kind === 'not' ? [filter.part] : filter.parts).some(asksForEmails)
}

/** Attributes whose values are unique among the resources of a provider. */
const unique: readonly FilterAttribute[] = ['id', 'userName', 'externalId']

/** True if at most one person can match the filter, so that an index finds the person. */
export function selectsOneUser(filter: ScimFilter): boolean {
  if (filter.kind === 'and') return filter.parts.some(selectsOneUser)
  return filter.kind === 'compare' && filter.op === 'eq' && unique.includes(filter.attribute)
}
