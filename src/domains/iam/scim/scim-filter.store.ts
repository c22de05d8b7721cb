// SQL of the filters of SCIM. Comparisons are written so that both databases give the same result.
import { join, type Sql, sql } from '#db/sql.ts'
import type { Comparison, FilterAttribute, ScimFilter } from './scim-filter.model.ts'
import { userNameKey } from './scim-users.model.ts'

/** Columns of people (`u`) and of one of their addresses (`e`). */
const columns: Readonly<Record<FilterAttribute, Sql>> = {
  id: sql`u.id`,
  userName: sql`u.user_name_key`,
  externalId: sql`u.external_id`,
  active: sql`u.active`,
  'meta.created': sql`u.create_time`,
  'meta.lastModified': sql`u.update_time`,
  'emails.value': sql`e.value_key`,
  'emails.type': sql`e.type_key`,
  'emails.primary': sql`e.is_primary`,
}

/** Attributes that are compared without regard to case. */
const caseless: readonly FilterAttribute[] = ['userName', 'emails.value', 'emails.type']

/** Attributes that always have a value. */
const present: readonly FilterAttribute[] = [
  'id',
  'userName',
  'active',
  'meta.created',
  'meta.lastModified',
  'emails.primary',
]

/** The condition that the filter makes; `undefined` for all people. */
export function conditionOf(filter: ScimFilter | undefined): Sql {
  if (!filter) return sql`1 = 1`
  if (filter.kind === 'not') return sql`NOT (${conditionOf(filter.part)})`
  if (filter.kind === 'email') {
    return sql`EXISTS (SELECT 1 FROM scim_emails e WHERE e.user_id = u.id AND (${conditionOf(filter.part)}))`
  }
  if (filter.kind === 'compare') return compare(filter.attribute, filter.op, filter.value)
  const parts = filter.parts.map((part) => sql`(${conditionOf(part)})`)
  return join(parts, filter.kind === 'and' ? ' AND ' : ' OR ')
}

function compare(attribute: FilterAttribute, op: Comparison, value: string | boolean): Sql {
  const column = columns[attribute]
  if (typeof value === 'boolean') return sql`${column} = ${Number(op === 'eq' ? value : !value)}`
  if (op === 'pr') return present.includes(attribute) ? sql`1 = 1` : sql`(${column} IS NOT NULL AND ${column} <> '')`
  const text = caseless.includes(attribute) ? userNameKey(value) : value
  const length = [...text].length
  // No value equals none (NULL), so each of these is true or false also below NOT.
  const conditions: Record<Exclude<Comparison, 'pr'>, () => Sql> = {
    eq: () => sql`${column} = ${text}`,
    ne: () => sql`${column} <> ${text}`,
    co: () => (text === '' ? sql`1 = 1` : sql`replace(${column}, ${text}, '') <> ${column}`),
    sw: () => sql`substr(${column}, 1, ${length}) = ${text}`,
    ew: () => sql`length(${column}) >= ${length} AND substr(${column}, length(${column}) - ${length} + 1) = ${text}`,
    gt: () => sql`${column} > ${text}`,
    ge: () => sql`${column} >= ${text}`,
    lt: () => sql`${column} < ${text}`,
    le: () => sql`${column} <= ${text}`,
  }
  const condition = conditions[op]()
  if (op === 'ne') return sql`(${column} IS NULL OR ${condition})`
  return attribute === 'externalId' ? sql`(${column} IS NOT NULL AND ${condition})` : sql`(${condition})`
}
