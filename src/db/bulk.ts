import { chunks } from '#lib/chunks.ts'
import { ident, join, type Reader, type Sql, sql } from './sql.ts'

/** SQLite takes longer for each parameter the more a statement has, and a statement for one row costs as much as ten rows. */
const valuesPerStatement = 400

/** The statements that insert all rows, none when there are none; each row is a list of values in parentheses. */
export function insertsOf(into: Sql, rows: readonly Sql[], after: Sql = sql``): Sql[] {
  const perRow = Math.max(1, rows[0]?.values.length ?? 1)
  const perStatement = Math.max(1, Math.floor(valuesPerStatement / perRow))
  return chunks(rows, perStatement).map((some) => sql`${into} VALUES ${join(some, ', ')} ${after}`)
}

/** The condition of a DELETE for rows where `which` holds. With a limit it picks at most so many, told apart by `key`. */
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
