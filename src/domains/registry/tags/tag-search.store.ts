import { list, type Reader, type Sql, sql } from '#db/sql.ts'
import { holds } from '#db/trigrams.ts'
import type { NameFilter } from './tag-parts.model.ts'
import { type Tag, visibleShapes } from './tags.model.ts'
import { fromRow, type Row, tagColumns } from './tags.store.ts'

/** Start and direction of a page of names. `last` is empty for the first page. */
export type NameRange = { last: string; desc: boolean }

/** The last name of the next `most` after `last`, and whether there are more of them that can match. */
export async function lastNameOf(
  reader: Reader,
  repo: number,
  { prefix }: NameFilter,
  { most, ...range }: NameRange & { most: number },
): Promise<{ name: string; more: boolean } | undefined> {
  const outermost = range.desc ? sql`min(name)` : sql`max(name)`
  const found = await reader.get<{ name: string | null; looked: number }>(sql`
    SELECT ${outermost} AS name, CAST(count(*) AS BIGINT) AS looked
      FROM (SELECT name FROM tags WHERE repo_id = ${repo} AND ${inRange(prefix, range)}
             ORDER BY name ${directionOf(range)} LIMIT ${most}) AS next`)
  return found?.name ? { name: found.name, more: Number(found.looked) === most } : undefined
}

/** The tags behind `last` and up to `upTo` that match, by name. */
export async function tagsByName(
  reader: Reader,
  repo: number,
  { prefix, part, asked }: NameFilter,
  { upTo, limit, ...range }: NameRange & { upTo: string; limit: number },
): Promise<Tag[]> {
  const end = range.desc ? sql`t.name >= ${upTo}` : sql`t.name <= ${upTo}`
  const rows = await reader.all<Row>(sql`
    SELECT ${tagColumns} FROM tags t
     WHERE t.repo_id = ${repo} AND ${inRange(prefix, range)} AND ${end} AND ${isAsked(part, asked)}
     ORDER BY t.name ${directionOf(range)} LIMIT ${limit}`)
  return rows.map(fromRow)
}

export async function countByName(reader: Reader, repo: number, { prefix, part, asked }: NameFilter): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM tags t
     WHERE t.repo_id = ${repo} AND ${within(prefix, '')} AND ${isAsked(part, asked)}`)
  return row?.total ?? 0
}

function isAsked(part: string, asked: number): Sql {
  const isVisible = sql`+t.shape IN (${list(visibleShapes(asked))})`
  return part === '' ? isVisible : sql`${hasPart(part)} AND ${isVisible}`
}

const directionOf = ({ desc }: NameRange): Sql => (desc ? sql`DESC` : sql`ASC`)

/** Of a tag `t`. */
export function hasPart(part: string): Sql {
  return holds(sql`lower(t.name)`, part)
}

const afterAll = '\u{10ffff}'

/** A range of the index of names, with one lower bound: of two SQLite would search by the first only, however far it is. */
export function within(prefix: string, last: string): Sql {
  const from = last < prefix ? sql`name >= ${prefix}` : sql`name > ${last}`
  return prefix === '' ? from : sql`${from} AND name < ${prefix + afterAll}`
}

function inRange(prefix: string, { last, desc }: NameRange): Sql {
  if (!desc) return within(prefix, last)
  const before = last === '' ? prefix + afterAll : last
  return sql`name >= ${prefix} AND name < ${before}`
}
