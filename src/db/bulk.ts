// Statements that many stores have: inserts of many rows, counts, searches, a page by uid, and the oldest rows to delete.
import { chunks } from '#lib/chunks.ts'
import type { Page } from '#lib/lists/paging.ts'
import { ident, join, type Reader, type Sql, sql, type Tx } from './sql.ts'

/**
 * Number of parameters in one statement. In SQLite, the cost of a parameter grows with their number, but a statement for one row
 * costs as much as ten rows.
 */
const valuesPerStatement = 400

/** Statements that insert all rows. Empty if there are no rows. Each row is a list of values in parentheses. */
export function insertsOf(into: Sql, rows: readonly Sql[], after: Sql = sql``): Sql[] {
  const perRow = Math.max(1, rows[0]?.values.length ?? 1)
  const perStatement = Math.max(1, Math.floor(valuesPerStatement / perRow))
  return chunks(rows, perStatement).map((some) => sql`${into} VALUES ${join(some, ', ')} ${after}`)
}

/**
 * Condition of a DELETE for rows that match `which`. If `limit` is finite, the condition selects at most `limit` rows by their
 * `key`.
 */
export function atMost(limit: number, table: string, key: string, which: Sql): Sql {
  if (limit === Number.POSITIVE_INFINITY) return which
  return sql`${which} AND ${ident(key)} IN (SELECT ${ident(key)} FROM ${ident(table)} WHERE ${which} LIMIT ${limit})`
}

/** Runs a query for all values, a limited number at a time, and returns all rows. */
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

/** True if the query finds a row. `from` begins with `FROM`. */
export async function exists(reader: Reader, from: Sql): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found ${from} LIMIT 1`)) !== undefined
}

/** Number of rows that the query finds. `from` begins with `FROM`. */
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
 * Functions that list and count the rows of one group, in the order of their uids. `at` returns the condition for the rows of a
 * group. `join` adds tables that the columns need.
 */
export function listByUid<Row, T, P>(
  { table, columns, join }: { table: string; columns: Sql; join?: Sql },
  at: (scope: P) => Sql,
  fromRow: (row: Row) => T,
) {
  const rows = sql`FROM ${ident(table)} t`
  return {
    /** Returns a page and one extra row, which shows that another page follows. */
    async list(reader: Reader, [scope]: readonly P[], page: Page): Promise<T[]> {
      const { desc } = page.order
      const after = page.after ? sql`AND t.uid ${desc ? sql`<` : sql`>`} ${page.after.uid}` : sql``
      const found = await reader.all<Row>(sql`
        SELECT ${columns} ${rows} ${join ?? sql``} WHERE ${at(scope!)} ${after}
         ORDER BY t.uid ${desc ? sql`DESC` : sql`ASC`} LIMIT ${page.size + 1} OFFSET ${page.skip}`)
      return found.map(fromRow)
    },
    count: (reader: Reader, [scope]: readonly P[]): Promise<number> =>
      countRows(reader, sql`${rows} WHERE ${at(scope!)}`),
  }
}
