import { top } from '#lib/uid.ts'
import { type Sql, sql } from './sql.ts'

/** Those of the table `t` that were made at a place and below it, after a uid; to be read in the order of their uids. */
export function madeBelow(place: string, after: string): Sql {
  const from = place === top || after > place ? after : place
  return place === top ? sql`t.uid > ${from}` : sql`t.uid > ${from} AND t.uid < ${`${place}0`}`
}
