// Lists of nodes with a minimum for one member, such as nodes changed since a time, in any order. Also has the parts of page
// queries for other lists.
import type { Page } from '#lib/lists/paging.ts'
import { afterKey, direction, type Listing, mergedPage } from './listing.ts'
import { ident, join, list, type Reader, type Sql, sql } from './sql.ts'

/** Selects nodes whose `column` has a greater value than `value`. The column must have keys in `list_keys`. */
export type GreaterThan = { column: string; value: string }

/**
 * Returns a page of the selected nodes and one extra row. Finds the nodes by their keys, and sorts them if the page has another
 * order.
 */
export async function listBeyond<T>(
  reader: Reader,
  listings: readonly Listing[],
  scopes: readonly string[],
  page: Page,
  beyond: GreaterThan,
): Promise<T[]> {
  const queries = listings.flatMap((listing) => scopes.map((scope) => beyondQuery(listing, scope, page, beyond)))
  return queries.length === 0 ? [] : reader.all<T>(mergedPage(queries, page))
}

function beyondQuery(listing: Listing, scope: string, page: Page, { column, value }: GreaterThan): Sql {
  const dir = direction(page)
  const inScope = sql`k.list = ${`${listing.kind}.${column}`} AND k.place = ${scope} AND k.value > ${value}`
  if (page.order.column === 'uid') {
    // Sorts only the keys, so the rows of nodes outside of the page are never read.
    const past = page.after ? sql`k.uid ${page.order.desc ? sql`<` : sql`>`} ${page.after.uid}` : sql`1 = 1`
    const ids = sql`
      SELECT k.id FROM list_keys k
       WHERE ${inScope} AND ${past} ORDER BY k.uid ${dir} LIMIT ${page.skip + page.size + 1}`
    return sql`
      SELECT ${listing.columns}
        FROM (${ids}) f JOIN ${ident(listing.table)} t ON t.id = f.id ${listing.join ?? sql``}
       ORDER BY t.uid ${dir}`
  }
  const order = page.order.column === column ? sql`k.value` : ident(`t.${page.order.column}`)
  return sql`
    SELECT ${listing.columns}
      FROM list_keys k JOIN ${ident(listing.table)} t ON t.id = k.id ${listing.join ?? sql``}
     WHERE ${inScope} AND ${afterKey(page, order, sql`k.uid`)}
     ORDER BY ${order} ${dir}, k.uid ${dir}`
}

/** Total number of the selected nodes. */
export async function countBeyond(
  reader: Reader,
  listings: readonly Pick<Listing, 'kind'>[],
  scopes: readonly string[],
  { column, value }: GreaterThan,
): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM list_keys
     WHERE list IN (${list(listings.map(({ kind }) => `${kind}.${column}`))}) AND place IN (${list(scopes)})
       AND value > ${value}`)
  return row?.total ?? 0
}

/** Condition for rows after the cursor. `keys` are the sort columns, and `values` are their values at the cursor. */
export function pastCursor(
  { order, after }: Pick<Page, 'order' | 'after'>,
  keys: readonly Sql[],
  values: readonly (string | number)[],
): Sql {
  if (!after) return sql`1 = 1`
  return sql`(${join(keys, ', ')}) ${order.desc ? sql`<` : sql`>`} (${list(values)})`
}

/** Sorts by `keys`, all in the direction of the page, and limits the query to one page and one extra row. */
export function pageTail(page: Pick<Page, 'order' | 'size' | 'skip'>, keys: readonly Sql[]): Sql {
  return sql`${orderOf(page, keys)} LIMIT ${page.size + 1} OFFSET ${page.skip}`
}

function orderOf(page: Pick<Page, 'order'>, keys: readonly Sql[]): Sql {
  const dir = direction(page)
  const directed = keys.map((key) => sql`${key} ${dir}`)
  return sql`ORDER BY ${join(directed, ', ')}`
}
