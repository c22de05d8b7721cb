// Lists of resources that users create in groups and repositories, such as rules, exemptions and holds. A group has only a few of
// them, so these lists have no rows in `list_keys`.
import type { Page } from '#lib/lists/paging.ts'
import { rootOf, top } from '#lib/uid.ts'
import { afterKey, countNodes, direction, type Listing, listPage, mergedPage } from './listing.ts'
import { ident, join, type Reader, type Sql, sql } from './sql.ts'

/** Condition for rows of the table `t` that belong to this group or repository, or to one below it. */
export function isInScope(scope: string): Sql {
  return scope === top ? sql`1 = 1` : sql`t.uid > ${`${scope}/`} AND t.uid < ${`${scope}0`}`
}

/** Lists of one kind of such resources. The groups and repositories that are passed must not contain each other. */
export type ScopeList<T, F> = {
  page(reader: Reader, scopes: readonly string[], page: Page, filter: F): Promise<T[]>
  count(reader: Reader, scopes: readonly string[], filter: F): Promise<number>
  /** First `most` rows of a group or repository and all below it, in the order of their uids. */
  below(reader: Reader, scope: string, filter: F, most: number): Promise<T[]>
}

const byUid = { order: { field: 'uid', column: 'uid', desc: false }, after: undefined, skip: 0, binding: '' }
const branchesOf = (scopes: readonly string[]) => scopes.map((below) => ({ below }))

/** Selects rows that are in force at `now`. If `now` is undefined, selects all rows. */
type Holding = { now: string | undefined }

/**
 * Filter for rows with an expiry. The column `ended` has the time at which a row was ended early, or is empty. Conditions for
 * expressions cannot be searched in an index. Otherwise the database could search the index of the expiry, and sort.
 */
export function holding(ended: string): Where<Holding> {
  return ({ now }, isWalked) => {
    if (now === undefined) return []
    const end = ident(`t.${ended}`)
    return [isWalked ? sql`(${end} || '') = ''` : sql`${end} = ''`, sql`(t.expire_time || '') > ${now}`]
  }
}

/**
 * SQL conditions of a filter. `isWalked` is true if rows are read from the index of an order other than the uid, and each row is
 * filtered.
 */
export type Where<F> = (filter: F, isWalked: boolean) => Sql[]

/** Creates the lists. `where` returns the SQL conditions of a filter. */
export function scopeList<Row, T, F>(
  { table, columns }: Pick<Listing, 'table' | 'columns'>,
  fromRow: (row: Row) => T,
  where: Where<F>,
): ScopeList<T, F> {
  const listing: Listing = { kind: table, table, columns, unkeyed: true }
  const read = async (reader: Reader, scopes: readonly string[], asked: Page, filters: readonly Sql[]) => {
    if (asked.order.column === 'uid') return listPage<Row>(reader, listing, branchesOf(scopes), asked, filters)
    const queries = scopes.map((scope) => orderedQuery(listing, scope, asked, filters))
    return queries.length === 0 ? [] : reader.all<Row>(mergedPage(queries, asked))
  }
  const page: ScopeList<T, F>['page'] = async (reader, scopes, asked, filter) => {
    return (await read(reader, scopes, asked, where(filter, asked.order.column !== 'uid'))).map(fromRow)
  }
  return {
    page,
    count: (reader, scopes, filter) => countNodes(reader, listing, branchesOf(scopes), where(filter, false)),
    below: (reader, scope, filter, most) => page(reader, [scope], { ...byUid, size: most - 1 }, filter),
  }
}

/**
 * Query for the rows of a group in the order of another column than the uid, after the cursor. Indexes have all rows, and the rows
 * of each organization, in this order. Other conditions are for expressions, so that the database does not choose another index
 * and sort.
 */
function orderedQuery({ table, columns }: Listing, scope: string, page: Page, filters: readonly Sql[]): Sql {
  const key = ident(`t.${page.order.column}`)
  const dir = direction(page)
  const root = rootOf(scope)
  const inRoot = scope === top ? [] : [sql`substr(t.uid, 1, 40) = ${root}`]
  const below =
    scope === top || scope === root ? [] : [sql`(t.uid || '') > ${`${scope}/`} AND (t.uid || '') < ${`${scope}0`}`]
  return sql`
    SELECT ${columns}
      FROM ${ident(table)} t
     WHERE ${join([...inRoot, ...below, afterKey(page, key, sql`t.uid`), ...filters], ' AND ')}
     ORDER BY ${key} ${dir}, t.uid ${dir}`
}
