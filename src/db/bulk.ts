// Statements that many stores have: inserts of many rows, counts, searches, a page by uid, and the oldest rows to delete.
import { chunks } from '#lib/chunks.ts'
import type { Page } from '#lib/lists/paging.ts'
import { ident, join, type Reader, type Sql, sql, type Tx } from './sql.ts'

/** SQLite takes longer for each parameter the more a statement has, and a statement for one row costs as much as ten rows. */
const valuesPerStatement = 400

/** The statements that insert all rows, none when there are none; each row is a list of values in parentheses. */
export function insertsOf(into: Sql, rows: readonly Sql[], after: Sql = sql``): Sql[] {
  const perRow = Math.max(1, rows[0]?.values.length ?? 1)
  const perStatement = Math.max(1, Math.floor(valuesPerStatement / perRow))
  return chunks(rows, perStatement).map((some) => sql`${into} VALUES ${join(some, ', ')} ${after}`)
}

/** Condition of a DELETE for rows that match `which`. With a limit, it selects at most `limit` rows, identified by `key`. */
export function atMost(limit: number, table: string, key: string, which: Sql): Sql {
  if (limit === Number.POSITIVE_INFINITY) return which
  return sql`${which} AND ${ident(key)} IN (SELECT ${ident(key)} FROM ${ident(table)} WHERE ${which} LIMIT ${limit})`
}

/** The rows of a query that asks for some of the values at a time. */
export async function allOf<Row, V>(
  reader: Reader,
  values: readonly V[],
  query: (some: readonly V[]) => Sql,
  atOnce: number = valuesPerStatement,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const some of chunks(values, atOnce)) for (const row of await reader.all<Row>(query(some))) rows.push(row)
  return rows
}

/** True if a row is found; `from` begins with `FROM`. */
export async function exists(reader: Reader, from: Sql): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found ${from} LIMIT 1`)) !== undefined
}

/** Number of rows that are found; `from` begins with `FROM`. */
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
 * List of the rows of one group in the order of their uids. `at` returns the condition of a group on the table `t`; `join` adds
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
      const { desc } = page.order
      const after = page.after ? sql`AND t.uid ${desc ? sql`<` : sql`>`} ${page.after.uid}` : sql``
      const found = await reader.all<Row>(sql`
        SELECT ${columns} ${rows} ${join ?? sql``} WHERE ${at(place!)} ${after}
         ORDER BY t.uid ${desc ? sql`DESC` : sql`ASC`} LIMIT ${page.size + 1} OFFSET ${page.skip}`)
      return found.map(fromRow)
    },
    count: (reader: Reader, [place]: readonly P[]): Promise<number> =>
      countRows(reader, sql`${rows} WHERE ${at(place!)}`),
  }
}
