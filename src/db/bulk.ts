import { chunks } from '#lib/chunks.ts'
import { join, type Sql, sql } from './sql.ts'

/** SQLite takes longer for each parameter the more a statement has, and a statement for one row costs as much as ten rows. */
const valuesPerStatement = 400

/** The statements that insert all rows, none when there are none; each row is a list of values in parentheses. */
export function insertsOf(into: Sql, rows: readonly Sql[], after: Sql = sql``): Sql[] {
  const perRow = Math.max(1, rows[0]?.values.length ?? 1)
  const perStatement = Math.max(1, Math.floor(valuesPerStatement / perRow))
  return chunks(rows, perStatement).map((some) => sql`${into} VALUES ${join(some, ', ')} ${after}`)
}
