// SQL for SCIM filters. The results are the same on SQLite and PostgreSQL.
import { join, type Sql, sql } from '#db/sql.ts'
import type { Comparison, FilterAttribute, ScimFilter } from './scim-filter.model.ts'
import { userNameKey } from './scim-users.model.ts'

/** Columns and tables that the SQL of a filter reads. */
export type FilterTarget = {
  columns: Readonly<Partial<Record<FilterAttribute, Sql>>>
  /** Beginning of the subquery for the entries of a list, such as addresses. */
  items: Sql
}

/** People (`u`) and their email addresses (`e`). */
export const userTarget: FilterTarget = {
  columns: {
    id: sql`u.id`,
    userName: sql`u.user_name_key`,
    externalId: sql`u.external_id`,
    active: sql`u.active`,
    'meta.created': sql`u.create_time`,
    'meta.lastModified': sql`u.update_time`,
    'emails.value': sql`e.value_key`,
    'emails.type': sql`e.type_key`,
    'emails.primary': sql`e.is_primary`,
  },
  items: sql`SELECT 1 FROM scim_emails e WHERE e.user_id = u.id`,
}

/** Groups (`g`) and their members (`m`). */
export const groupTarget: FilterTarget = {
  columns: {
    id: sql`g.id`,
    displayName: sql`g.name_key`,
    externalId: sql`g.external_id`,
    'meta.created': sql`g.create_time`,
    'meta.lastModified': sql`g.update_time`,
    'members.value': sql`m.user_id`,
  },
  items: sql`SELECT 1 FROM scim_group_members m WHERE m.group_id = g.id`,
}

/** Attributes for which upper and lower case are the same. */
const caseless: readonly FilterAttribute[] = ['userName', 'emails.value', 'emails.type', 'displayName']

/** Attributes that every resource has. */
const present: readonly FilterAttribute[] = [
  'id',
  'userName',
  'active',
  'meta.created',
  'meta.lastModified',
  'emails.primary',
  'displayName',
  'members.value',
]

/** SQL condition for a filter. Always true without a filter. */
export function conditionOf(filter: ScimFilter | undefined, target: FilterTarget): Sql {
  if (!filter) return sql`1 = 1`
  if (filter.kind === 'not') return sql`NOT (${conditionOf(filter.part, target)})`
  if (filter.kind === 'item') return sql`EXISTS (${target.items} AND (${conditionOf(filter.part, target)}))`
  if (filter.kind === 'compare') return compare(target, filter.attribute, filter.op, filter.value)
  const parts = filter.parts.map((part) => sql`(${conditionOf(part, target)})`)
  return join(parts, filter.kind === 'and' ? ' AND ' : ' OR ')
}

function compare(target: FilterTarget, attribute: FilterAttribute, op: Comparison, value: string | boolean): Sql {
  const column = target.columns[attribute]!
  if (typeof value === 'boolean') return sql`${column} = ${Number(op === 'eq' ? value : !value)}`
  if (op === 'pr') return present.includes(attribute) ? sql`1 = 1` : sql`(${column} IS NOT NULL AND ${column} <> '')`
  const text = caseless.includes(attribute) ? userNameKey(value) : value
  const length = [...text].length
  // Columns are never NULL here. So each condition is true or false, and NOT inverts it.
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
