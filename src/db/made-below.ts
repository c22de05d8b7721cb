// Lists of resources that users create in groups and repositories, such as rules, exemptions and holds. A group has only a few of
// them, so these lists have no rows in `list_keys`.
import type { Page } from '#lib/lists/paging.ts'
import { rootOf, top } from '#lib/uid.ts'
import { afterKey, countNodes, direction, type Listing, listPage, mergedPage } from './listing.ts'
import { ident, join, type Reader, type Sql, sql } from './sql.ts'

/** Condition for rows of the table `t` that belong to this group or repository, or to one below it. */
export function madeBelow(place: string): Sql {
  return place === top ? sql`1 = 1` : sql`t.uid > ${`${place}/`} AND t.uid < ${`${place}0`}`
}

/** Lists of one kind of such resources. The groups and repositories that are passed must not contain each other. */
export type MadeList<T, F> = {
  page(reader: Reader, places: readonly string[], page: Page, filter: F): Promise<T[]>
  count(reader: Reader, places: readonly string[], filter: F): Promise<number>
  /** First `most` rows of a group or repository and all below it, in the order of their uids. */
  below(reader: Reader, place: string, filter: F, most: number): Promise<T[]>
}

const byUid = { order: { field: 'uid', column: 'uid', desc: false }, after: undefined, skip: 0, binding: '' }
const branchesOf = (places: readonly string[]) => places.map((below) => ({ below }))

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
export function madeList<Row, T, F>(
  { table, columns }: Pick<Listing, 'table' | 'columns'>,
  fromRow: (row: Row) => T,
  where: Where<F>,
): MadeList<T, F> {
  const listing: Listing = { kind: table, table, columns, unkeyed: true }
  const read = async (reader: Reader, places: readonly string[], asked: Page, filters: readonly Sql[]) => {
    if (asked.order.column === 'uid') return listPage<Row>(reader, listing, branchesOf(places), asked, filters)
    const queries = places.map((place) => orderedQuery(listing, place, asked, filters))
    return queries.length === 0 ? [] : reader.all<Row>(mergedPage(queries, asked))
  }
  const page: MadeList<T, F>['page'] = async (reader, places, asked, filter) => {
    return (await read(reader, places, asked, where(filter, asked.order.column !== 'uid'))).map(fromRow)
  }
  return {
    page,
    count: (reader, places, filter) => countNodes(reader, listing, branchesOf(places), where(filter, false)),
    below: (reader, place, filter, most) => page(reader, [place], { ...byUid, size: most - 1 }, filter),
  }
}

/**
 * Query for the rows of a group in the order of another column than the uid, after the cursor. Indexes have all rows, and the rows
 * of each organization, in this order. Other conditions are for expressions, so that the database does not choose another index
 * and sort.
 */
function orderedQuery({ table, columns }: Listing, place: string, page: Page, filters: readonly Sql[]): Sql {
  const key = ident(`t.${page.order.column}`)
  const dir = direction(page)
  const root = rootOf(place)
  const inRoot = place === top ? [] : [sql`substr(t.uid, 1, 40) = ${root}`]
  const below =
    place === top || place === root ? [] : [sql`(t.uid || '') > ${`${place}/`} AND (t.uid || '') < ${`${place}0`}`]
  return sql`
    SELECT ${columns}
      FROM ${ident(table)} t
     WHERE ${join([...inRoot, ...below, afterKey(page, key, sql`t.uid`), ...filters], ' AND ')}
     ORDER BY ${key} ${dir}, t.uid ${dir}`
}
