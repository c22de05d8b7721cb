// Filters of SCIM (RFC 7644, 3.4.2.2) after they were read: conditions on attributes that have a column.

/** Attributes of people and groups that can be filtered by; those of `emails` and `members` hold for one value of the list. */
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
  /** One address, or one member, for which the part holds. */
  | { kind: 'item'; part: ScimFilter }
  | { kind: 'compare'; attribute: FilterAttribute; op: Comparison; value: string | boolean }

/** Whether a filter of people asks for addresses. */
export function asksForEmails(filter: ScimFilter): boolean {
  if (filter.kind === 'compare') return false
  return filter.kind === 'item' || (filter.kind === 'not' ? [filter.part] : filter.parts).some(asksForEmails)
}

/** Attributes of which each provider has a value once. */
const unique: readonly FilterAttribute[] = ['id', 'userName', 'externalId']

/** Whether an index finds the one person for whom the filter can hold. */
export function looksUpOne(filter: ScimFilter): boolean {
  if (filter.kind === 'and') return filter.parts.some(looksUpOne)
  return filter.kind === 'compare' && filter.op === 'eq' && unique.includes(filter.attribute)
}
