// Lists and counts advisories by any combination of filters, using indexes. The query begins with the filter that the fewest
// advisories match. Other filters are checked on the results. Without such a filter, the list is read in order until the page is
// full.
import { after, bounds, countNodes, direction, listPage, scopeKeyOf, union } from '#db/listing.ts'
import { ident, join, list, type Reader, type Sql, sql } from '#db/sql.ts'
import type { Branch, Page } from '#lib/lists/paging.ts'
import type { Advisory } from './advisories.model.ts'
import { columns, fromRow, listing, type Row } from './advisories.store.ts'
import { findTerms } from './advisory-index.store.ts'
import { type AdvisoryFilter, facets, folded, rare, setHas, several, suffixStart } from './advisory-terms.model.ts'

/**
 * SQL condition of a filter on the row `t`. If the terms of the filter are known, `terms` contains them, and an advisory needs
 * one of them.
 */
type Condition = {
  terms: readonly number[] | undefined
  /** True if an advisory can have more than one of the terms. */
  overlap: boolean
  /** True if the terms have no counters. */
  rare: boolean
  /** True if the advisory must have none of the terms. */
  excludes: boolean
  test: Sql
  /** The same condition on a row of the table with searched texts. */
  ofText?: Sql
}

/** The condition that is queried first, and the number of advisories that meet it. */
type Lead = { terms: readonly number[]; overlap: boolean; rows: number; others: Sql[] }

/** Limits that determine which query answers a list. Tests lower the limits, so that all queries are used. */
export type Limits = {
  /** Limit on branches times terms. Above it, merging the lists of all terms is slower than reading the list in order. */
  arms: number
  /** Limit on the rows that are collected and sorted. */
  rows: number
}
const usual: Limits = { arms: 400, rows: 2000 }

/** One page of advisories, and one more row. */
export async function listAdvisories(
  reader: Reader,
  branches: readonly Branch[],
  page: Page,
  filter: AdvisoryFilter,
  limits: Limits = usual,
): Promise<Advisory[]> {
  const conditions = await conditionsOf(reader, filter, limits)
  if (branches.length === 0 || !conditions) return []
  const tests = conditions.map(({ test }) => test)
  const lead = await findLead(reader, branches, conditions)
  const query = lead && queryFrom(lead, branches, page, limits)
  const rows = query
    ? await reader.all<Row>(query)
    : await listPage<Row>(reader, listing, branches, page, tests, !byUids(branches))
  return rows.map(fromRow)
}

export async function countAdvisories(
  reader: Reader,
  branches: readonly Branch[],
  filter: AdvisoryFilter,
  limits: Limits = usual,
): Promise<number> {
  const conditions = await conditionsOf(reader, filter, limits)
  if (branches.length === 0 || !conditions) return 0
  const [only, ...more] = conditions
  const tests = conditions.map(({ test }) => test)
  if (!only || byUids(branches)) return countNodes(reader, listing, branches, tests)
  if (more.length === 0 && only.terms) {
    const some = await countTerms(reader, branches, only.terms, only.overlap || only.rare)
    return only.excludes ? (await countNodes(reader, listing, branches)) - some : some
  }
  const lead = await findLead(reader, branches, conditions)
  if (lead) return countRows(reader, branches, lead.terms, lead.overlap, lead.others)
  // Too many terms contain the text, so all texts are searched.
  return countIn(reader, branches, (branch) => {
    const where = join([...inBranch(branch), ...conditions.map(({ test, ofText }) => ofText ?? test)], ' AND ')
    return sql`SELECT count(*) AS total FROM advisory_texts t WHERE ${where}`
  })
}

/** Returns undefined if no advisory can meet the filter. */
async function conditionsOf(reader: Reader, filter: AdvisoryFilter, limits: Limits): Promise<Condition[] | undefined> {
  const conditions: Condition[] = []
  for (const { facet, values } of filter.values) {
    const terms = (await findTerms(reader, facet, values)).map(({ id }) => id)
    const overlap = several.has(facet) && terms.length > 1
    conditions.push({ terms, overlap, rare: rare.has(facet), excludes: false, test: hasOneOf(terms) })
  }
  for (const { facet, numbers } of filter.numbers) {
    const terms = (await allTerms(reader, facet)).filter(({ value }) => setHas(value, numbers)).map(({ id }) => id)
    conditions.push({ terms, overlap: false, rare: false, excludes: false, test: hasOneOf(terms) })
  }
  if (filter.query !== '') conditions.push(await holding(reader, folded(filter.query), limits))
  if (conditions.some(({ terms }) => terms?.length === 0)) return undefined

  const excluded = (await findTerms(reader, facets.eventAuthor, filter.excludedAuthors)).map(({ id }) => id)
  if (excluded.length > 0) {
    conditions.push({
      terms: excluded,
      overlap: excluded.length > 1,
      rare: false,
      excludes: true,
      test: sql`NOT ${hasOneOf(excluded)}`,
    })
  }
  return conditions
}

function hasOneOf(terms: readonly number[]): Sql {
  return sql`EXISTS (SELECT 1 FROM advisory_postings q WHERE q.term_id IN (${list(terms)}) AND q.uid = t.uid)`
}

/** The terms that contain a text. If there are too many terms, `terms` is undefined, because most advisories match anyway. */
async function holding(reader: Reader, text: string, { arms, rows: most }: Limits): Promise<Condition> {
  const { start, whole } = suffixStart(text)
  const rows = await reader.all<{ id: number; value: string }>(sql`
    SELECT s.term_id AS id, t.value
      FROM (SELECT term_id FROM advisory_suffixes
             WHERE suffix >= ${start} AND suffix < ${`${start}\u{10ffff}`} LIMIT ${most + 1}) s
      CROSS JOIN advisory_terms t
     WHERE t.id = s.term_id`)
  const held = new Set(rows.filter(({ value }) => whole || folded(value).includes(text)).map(({ id }) => Number(id)))
  const pattern = sql`${`%${text.replace(/[\\%_]/g, '\\$&')}%`} ESCAPE '\\'`
  return {
    // A term that contains the text several times gives several rows, so the terms are complete only if fewer rows than the limit
    // were found.
    terms: rows.length > most || held.size > arms ? undefined : [...held],
    overlap: true,
    rare: false,
    excludes: false,
    test: sql`EXISTS (SELECT 1 FROM advisory_texts x WHERE x.uid = t.uid AND x.text LIKE ${pattern})`,
    ofText: sql`t.text LIKE ${pattern}`,
  }
}

/** The condition with known terms that matches the fewest advisories. */
async function findLead(
  reader: Reader,
  branches: readonly Branch[],
  conditions: readonly Condition[],
): Promise<Lead | undefined> {
  if (byUids(branches)) return undefined
  let lead: Lead | undefined
  for (const { terms, overlap, rare, excludes, test } of conditions) {
    if (!terms || excludes) continue
    const rows = await (rare ? countRows(reader, branches, terms, false, []) : countAt(reader, branches, terms))
    if (lead && lead.rows <= rows) continue
    lead = { terms, overlap, rows, others: conditions.flatMap((other) => (other.test === test ? [] : [other.test])) }
  }
  return lead
}

function queryFrom(lead: Lead, branches: readonly Branch[], page: Page, { arms, rows }: Limits): Sql | undefined {
  if (page.order.column === 'uid' && branches.length * lead.terms.length <= arms)
    return mergeQuery(lead, branches, page)
  return lead.rows <= rows ? collectQuery(lead, branches, page) : undefined
}

/** The index lists the advisories of a term in the order of their uids. The same advisory can occur under several terms. */
function mergeQuery({ terms, overlap, others }: Lead, branches: readonly Branch[], page: Page): Sql {
  const dir = direction(page)
  const enough = page.skip + page.size + 1
  const arms = branches.flatMap((branch) =>
    terms.map((term, i) => {
      const where = join([sql`t.term_id = ${term}`, ...inBranch(branch, page), ...others], ' AND ')
      return sql`SELECT * FROM (SELECT t.uid, t.id FROM advisory_postings t WHERE ${where}
                 ORDER BY t.uid ${dir} LIMIT ${enough}) AS ${ident(`a${i}`)}`
    }),
  )
  return sql`
    SELECT ${columns}
      FROM (SELECT ${overlap ? sql`DISTINCT` : sql``} uid, id FROM (${union(arms)}) AS found
             ORDER BY uid ${dir} LIMIT ${page.size + 1} OFFSET ${page.skip}) AS m
      CROSS JOIN advisories t
     WHERE t.id = m.id
     ORDER BY m.uid ${dir}`
}

function collectQuery({ terms, others }: Lead, branches: readonly Branch[], page: Page): Sql {
  const dir = direction(page)
  const key = ident(`t.${page.order.column}`)
  const found = branches.map((branch) => {
    const where = join([sql`t.term_id IN (${list(terms)})`, ...inBranch(branch)], ' AND ')
    return sql`SELECT t.id FROM advisory_postings t WHERE ${where}`
  })
  return sql`
    SELECT ${columns}
      FROM (SELECT DISTINCT id FROM (${union(found)}) AS found) AS m CROSS JOIN advisories t
     WHERE ${join([sql`t.id = m.id`, after(page, key, sql`t.uid`), ...others], ' AND ')}
     ORDER BY ${key} ${dir}, t.uid ${dir}
     LIMIT ${page.size + 1} OFFSET ${page.skip}`
}

/**
 * Counts advisories with the terms. Adds up the counters if they exist and no advisory has two of the terms. Otherwise counts row
 * by row.
 */
function countTerms(reader: Reader, branches: readonly Branch[], terms: readonly number[], oneByOne: boolean) {
  return oneByOne ? countRows(reader, branches, terms, true, []) : countAt(reader, branches, terms)
}

function countRows(
  reader: Reader,
  branches: readonly Branch[],
  terms: readonly number[],
  overlap: boolean,
  others: readonly Sql[],
): Promise<number> {
  return countIn(reader, branches, (branch) => {
    const where = join([sql`t.term_id IN (${list(terms)})`, ...inBranch(branch), ...others], ' AND ')
    return sql`SELECT count(${overlap ? sql`DISTINCT t.id` : sql`*`}) AS total FROM advisory_postings t WHERE ${where}`
  })
}

async function countIn(reader: Reader, branches: readonly Branch[], query: (branch: Branch) => Sql): Promise<number> {
  let total = 0
  for (const branch of branches) total += Number((await reader.get<{ total: number }>(query(branch)))?.total ?? 0)
  return total
}

async function countAt(reader: Reader, branches: readonly Branch[], terms: readonly number[]): Promise<number> {
  const scopes = branches.flatMap((branch) => ('uids' in branch ? [] : [scopeKeyOf(branch)]))
  const row = await reader.get<{ total: number }>(sql`
    SELECT CAST(coalesce(sum(total), 0) AS BIGINT) AS total
      FROM advisory_term_counts WHERE term_id IN (${list(terms)}) AND place IN (${list(scopes)})`)
  return row?.total ?? 0
}

/** All terms of a facet that has few terms. */
function allTerms(reader: Reader, facet: number): Promise<{ id: number; value: string }[]> {
  return reader.all(sql`SELECT id, value FROM advisory_terms WHERE facet = ${facet}`)
}

const segmentLength = 17

/** Condition for the uids of a branch in the index. Direct children have a uid of a fixed length. */
function inBranch(branch: Branch, page?: Page): Sql[] {
  if ('uids' in branch) throw new Error('a list of uids has no range')
  const below = 'below' in branch ? branch : { below: branch.childrenOf }
  const from: Page = page ?? { order: byUid, after: undefined, size: 0, skip: 0, binding: '' }
  const range = bounds(below, from)
  return 'below' in branch ? range : [...range, sql`length(t.uid) = ${branch.childrenOf.length + segmentLength}`]
}

const byUid = { field: 'uid', column: 'uid', desc: false }

function byUids(branches: readonly Branch[]): boolean {
  return branches.some((branch) => 'uids' in branch)
}
