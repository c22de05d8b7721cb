// Statements that many stores have: whether there are rows, how many, a page of them, and the oldest to delete.
import type { Page } from '#lib/lists/paging.ts'
import { direction } from './listing.ts'
import { ident, type Reader, type Sql, sql, type Tx } from './sql.ts'

/** Whether a row is found; `from` begins with FROM. */
export async function exists(reader: Reader, from: Sql): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found ${from} LIMIT 1`)) !== undefined
}

/** How many rows are found; `from` begins with FROM. */
export async function countRows(reader: Reader, from: Sql): Promise<number> {
  return (await reader.get<{ total: number }>(sql`SELECT count(*) AS total ${from}`))!.total
}

/** Deletes at most `limit` rows whose time in `column` is `time` or before, the oldest first. Returns how many it deleted. */
export function deleteOldest(
  tx: Tx,
  { table, key, column = 'expire_time' }: { table: string; key: string; column?: string },
  time: string,
  limit: number,
): Promise<number> {
  const [of, at] = [ident(key), ident(column)]
  return tx.run(sql`
    DELETE FROM ${ident(table)} WHERE ${of} IN (
      SELECT ${of} FROM ${ident(table)} WHERE ${at} <= ${time} ORDER BY ${at} LIMIT ${limit})`)
}

/**
 * List of the rows of one place in the order of their uids. `at` gives the condition of a place on the table `t`; `join` adds
 * tables for the columns.
 */
export function listByUid<Row, T, P>(
  { table, columns, join }: { table: string; columns: Sql; join?: Sql },
  at: (place: P) => Sql,
  fromRow: (row: Row) => T,
) {
  const rows = sql`FROM ${ident(table)} t`
  return {
    /** One row more than the page has room for. */
    async list(reader: Reader, [place]: readonly P[], page: Page): Promise<T[]> {
      const after = page.after ? sql`AND t.uid ${page.order.desc ? sql`<` : sql`>`} ${page.after.uid}` : sql``
      const found = await reader.all<Row>(sql`
        SELECT ${columns} ${rows} ${join ?? sql``} WHERE ${at(place!)} ${after}
         ORDER BY t.uid ${direction(page)} LIMIT ${page.size + 1} OFFSET ${page.skip}`)
      return found.map(fromRow)
    },
    count: (reader: Reader, [place]: readonly P[]): Promise<number> =>
      countRows(reader, sql`${rows} WHERE ${at(place!)}`),
  }
}
