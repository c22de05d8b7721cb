import { list, type Reader, type Sql, sql } from '#db/sql.ts'
import { holds } from '#db/trigrams.ts'
import type { NameFilter } from './tag-parts.model.ts'
import { type Tag, visibleShapes } from './tags.model.ts'
import { fromRow, type Row, tagColumns } from './tags.store.ts'

/** The last name of the next `most` after `last`, and whether there are more of them that can match. */
export async function lastNameOf(
  reader: Reader,
  repo: number,
  { prefix }: NameFilter,
  { last, most }: { last: string; most: number },
): Promise<{ name: string; more: boolean } | undefined> {
  const found = await reader.get<{ name: string | null; looked: number }>(sql`
    SELECT max(name) AS name, CAST(count(*) AS BIGINT) AS looked
      FROM (SELECT name FROM tags WHERE repo_id = ${repo} AND ${within(prefix, last)} ORDER BY name LIMIT ${most}) AS next`)
  return found?.name ? { name: found.name, more: Number(found.looked) === most } : undefined
}

/** The tags behind `last` and up to `upTo` that match, by name. */
export async function tagsByName(
  reader: Reader,
  repo: number,
  { prefix, part, asked }: NameFilter,
  { last, upTo, limit }: { last: string; upTo: string; limit: number },
): Promise<Tag[]> {
  const has = part === '' ? sql`` : sql`AND ${hasPart(part)}`
  const rows = await reader.all<Row>(sql`
    SELECT ${tagColumns} FROM tags t
     WHERE t.repo_id = ${repo} AND ${within(prefix, last)} AND t.name <= ${upTo} ${has}
       AND +t.shape IN (${list(visibleShapes(asked))})
     ORDER BY t.name LIMIT ${limit}`)
  return rows.map(fromRow)
}

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
