// Queries of published advisories: the advisories of a group with an approved event, by origin package.
import { join, list, type Reader, type Sql, sql } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import type { Advisory } from './advisories.model.ts'
import { columns, fromRow, type Row } from './advisories.store.ts'
import { facets } from './advisory-terms.model.ts'

export type PublishedOrigin = { origin: string; term: number; advisories: number }
export type OriginFilter = { origin: string; aliases: readonly string[] }

/** One page of origin packages by name, and one more row. */
export async function listOrigins(
  reader: Reader,
  group: string,
  page: Page,
  filter: OriginFilter,
): Promise<PublishedOrigin[]> {
  const dir = page.order.desc ? sql`DESC` : sql`ASC`
  const past = page.order.desc ? sql`<` : sql`>`
  const from = page.after ? [sql`t.value ${past} ${page.after.value}`] : []
  const rows = await reader.all<PublishedOrigin>(sql`
    SELECT t.value AS origin, t.id AS term, ${total(group)} AS advisories
      FROM advisory_terms t
     WHERE ${join([...conditions(group, filter), ...from], ' AND ')}
     ORDER BY t.value ${dir} LIMIT ${page.size + 1} OFFSET ${page.skip}`)
  return rows.map(({ origin, term, advisories }) => ({ origin, term: Number(term), advisories: Number(advisories) }))
}

export async function countOrigins(reader: Reader, group: string, filter: OriginFilter): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM advisory_terms t WHERE ${join(conditions(group, filter), ' AND ')}`)
  return Number(row?.total ?? 0)
}

/** Uids of all advisories after a uid, in order. */
export async function uidsAfter(reader: Reader, after: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT uid FROM advisories WHERE uid > ${after} ORDER BY uid LIMIT ${most}`)
  return rows.map(({ uid }) => uid)
}

/** Number of advisories of the group that have the term `t`. */
function total(group: string): Sql {
  return sql`(SELECT CAST(coalesce(sum(c.total), 0) AS BIGINT)
                FROM advisory_term_counts c WHERE c.term_id = t.id AND c.place = ${group})`
}

function conditions(group: string, { origin, aliases }: OriginFilter): Sql[] {
  const any = [sql`t.facet = ${facets.document}`, sql`${total(group)} > 0`]
  if (origin !== '') any.push(sql`t.value = ${origin}`)
  if (aliases.length > 0) any.push(sql`t.value IN (${originsWith(group, aliases)})`)
  return any
}

/** Origin packages of the published advisories that have one of the aliases. */
function originsWith(group: string, aliases: readonly string[]): Sql {
  return sql`
    SELECT a.origin
      FROM advisory_terms k
      JOIN advisory_postings p ON p.term_id = k.id
      JOIN advisories a ON a.id = p.id
      JOIN advisory_terms d ON d.facet = ${facets.document} AND d.value = a.origin
     WHERE k.facet = ${facets.alias} AND k.value IN (${list(aliases)})
       AND p.uid > ${`${group}/`} AND p.uid < ${`${group}0`}
       AND EXISTS (SELECT 1 FROM advisory_postings o WHERE o.term_id = d.id AND o.uid = p.uid)`
}

/** The published advisories of some origin packages, in the order of their public IDs. */
export async function listPublished(reader: Reader, group: string, terms: readonly number[]): Promise<Advisory[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns}
      FROM advisory_postings p JOIN advisories t ON t.id = p.id
     WHERE p.term_id IN (${list(terms)}) AND p.uid > ${`${group}/`} AND p.uid < ${`${group}0`}
     ORDER BY t.advisory_id, t.uid`)
  return rows.map(fromRow)
}

/** Advisories on artifacts with these names, in some groups and their descendants. */
export async function listAbout(
  reader: Reader,
  groups: readonly string[],
  names: readonly string[],
): Promise<Advisory[]> {
  // Each scope has a separate query. A single query with OR would read the advisories of all other scopes on these names.
  const found = groups.map(
    (group) => sql`
        SELECT p.id FROM advisory_terms k JOIN advisory_postings p ON p.term_id = k.id
         WHERE k.facet = ${facets.artifactName} AND k.value IN (${list(names)})
           AND p.uid > ${`${group}/`} AND p.uid < ${`${group}0`}`,
  )
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM advisories t WHERE t.id IN (${join(found, ' UNION ALL ')})`)
  return rows.map(fromRow)
}
