// Lists of resources that users create in groups and repositories, such as rules, exemptions and holds. A group has only a few of
// them, so these lists have no rows in `list_keys`.
import type { Page } from '#lib/lists/paging.ts'
import { top } from '#lib/uid.ts'
import { countNodes, type Listing, listPage } from './listing.ts'
import { ident, type Reader, type Sql, sql } from './sql.ts'

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

/** Filter for rows with an expiry. The column `ended` has the time at which a row was ended early, or is empty. */
export function holding(ended: string): (filter: Holding) => Sql[] {
  return ({ now }) => (now === undefined ? [] : [sql`${ident(`t.${ended}`)} = '' AND t.expire_time > ${now}`])
}

/** Creates the lists. `where` returns the SQL conditions of a filter. */
export function madeList<Row, T, F>(
  { table, columns }: Pick<Listing, 'table' | 'columns'>,
  fromRow: (row: Row) => T,
  where: (filter: F) => Sql[],
): MadeList<T, F> {
  const listing: Listing = { kind: table, table, columns, unkeyed: true }
  const page: MadeList<T, F>['page'] = async (reader, places, asked, filter) => {
    return (await listPage<Row>(reader, listing, branchesOf(places), asked, where(filter))).map(fromRow)
  }
  return {
    page,
    count: (reader, places, filter) => countNodes(reader, listing, branchesOf(places), where(filter)),
    below: (reader, place, filter, most) => page(reader, [place], { ...byUid, size: most - 1 }, filter),
  }
}
