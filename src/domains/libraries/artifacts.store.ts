import { afterKey, countAt, direction, type Keys, type Listing, mergedPage, placeQuery } from '#db/listing.ts'
import { ident, join, type Reader, type Sql, sql } from '#db/sql.ts'
import { type Candidates, candidatesOf, holds } from '#db/trigrams.ts'
import type { Page } from '#lib/paging.ts'
import {
  type Artifact,
  type ArtifactVersion,
  createTimeOf,
  type Ecosystem,
  type StoredVersion,
  sortKeyOf,
  uidOf,
} from './artifacts.model.ts'

export const kind = 'artifacts'
export const columns = sql`
  t.uid, t.ecosystem, t.name, t.description, t.latest_version AS "latestVersion", t.version_count AS "versionCount",
  t.create_time AS "createTime", t.update_time AS "updateTime"`
const listing: Listing = { kind, table: 'artifacts', columns }

export const keysOf = ({ uid, name, createTime, updateTime }: Artifact): Keys => ({
  uid,
  name,
  create_time: createTime,
  update_time: updateTime,
})

/** The search of the libraries of one ecosystem. */
export const searchKind = (ecosystem: Ecosystem): string => `${kind}.${ecosystem}`

/** A part of an ecosystem, and a text in lower case that the names must hold; an empty one holds for all. */
export type Scope = { ecosystem: Ecosystem; place: string; text: string }

/** One row more than the page has room for, and how many match in all. */
export async function listArtifacts(reader: Reader, scopes: readonly Scope[], page: Page) {
  const found = await Promise.all(scopes.map((scope) => searchIn(reader, scope, page)))
  const some = found.filter(({ total }) => total > 0)
  const total = some.reduce((sum, one) => sum + one.total, 0)
  if (total === 0) return { rows: [], total }
  const rows = await reader.all<Artifact>(
    mergedPage(
      some.map(({ query }) => query),
      page,
    ),
  )
  return { rows, total }
}

export function countArtifacts(reader: Reader, place: string): Promise<number> {
  return countAt(reader, kind, [place])
}

async function searchIn(reader: Reader, scope: Scope, page: Page): Promise<{ total: number; query: Sql }> {
  const { ecosystem, place, text } = scope
  const listed = await countArtifacts(reader, place)
  if (text === '' || listed === 0) return { total: listed, query: placeQuery(listing, place, page) }

  const candidates = await candidatesOf(reader, searchKind(ecosystem), text)
  const total = await countMatches(reader, scope, candidates, listed)
  // Either the order is followed until the page is full, or the candidates are sorted: whichever looks at fewer rows.
  const onTheWay = Math.min(listed, ((page.skip + page.size + 1) * listed) / Math.max(total, 1))
  if (onTheWay < candidates.total) return { total, query: placeQuery(listing, place, page, [holds(name, text)]) }

  const column = ident(`t.${page.order.column}`)
  const dir = direction(page)
  const query = sql`
    SELECT ${columns} ${among(scope, candidates, [afterKey(page, column, sql`t.uid`)])}
     ORDER BY ${column} ${dir}, t.uid ${dir}`
  return { total, query }
}

const name = sql`lower(t.name)`

async function countMatches(reader: Reader, scope: Scope, candidates: Candidates, listed: number): Promise<number> {
  const { ecosystem, place, text } = scope
  if (candidates.total === 0 || (candidates.exact && place === ecosystem)) return candidates.total
  const from =
    listed < candidates.total
      ? sql`FROM list_keys k JOIN artifacts t ON t.id = k.id
           WHERE k.list = ${`${kind}.uid`} AND k.place = ${place} AND ${holds(name, text)}`
      : among(scope, candidates, [])
  return (await reader.get<{ total: number }>(sql`SELECT count(*) AS total ${from}`))?.total ?? 0
}

/** The candidates that match. A place that is only part of its ecosystem is looked up for each. */
function among({ ecosystem, place, text }: Scope, candidates: Candidates, more: readonly Sql[]): Sql {
  const listed = sql`EXISTS (
    SELECT 1 FROM list_keys k
     WHERE k.list = ${`${kind}.uid`} AND k.place = ${place} AND k.value = t.uid AND k.uid = t.uid)`
  const conditions = [holds(name, text), ...(place === ecosystem ? [] : [listed]), ...more]
  return sql`FROM (${candidates.ids}) AS c JOIN artifacts t ON t.id = c.id WHERE ${join(conditions, ' AND ')}`
}

type Found = Artifact & { id: number }

export function findArtifact(reader: Reader, uid: string): Promise<Found | undefined> {
  return reader.get<Found>(sql`SELECT t.id, ${columns} FROM artifacts t WHERE t.uid = ${uid}`)
}

export const versionColumns = sql`
  v.version, v.description, v.size_bytes AS "sizeBytes", v.remediated, v.release_time AS "releaseTime",
  v.change_time AS "changeTime", v.first_time AS "firstTime"`

/** One row more than the page has room for, in the order of the ecosystem. */
export async function listVersions(reader: Reader, artifact: Found, page: Page): Promise<ArtifactVersion[]> {
  const { id, ecosystem, name } = artifact
  const dir = direction(page)
  const cursor = page.after && { value: sortKeyOf(ecosystem, page.after.value), uid: page.after.value }
  const rows = await reader.all<StoredVersion>(sql`
    SELECT ${versionColumns}
      FROM artifact_versions v
     WHERE v.artifact_id = ${id} AND ${afterKey({ ...page, after: cursor }, sql`v.sort_key`, sql`v.version`)}
     ORDER BY v.sort_key ${dir}, v.version ${dir}
     LIMIT ${page.size + 1} OFFSET ${page.skip}`)
  return rows.map((row) => toVersion(uidOf(ecosystem, name), name, row))
}

function toVersion(artifact: string, name: string, row: StoredVersion): ArtifactVersion {
  const { version, description, sizeBytes, changeTime } = row
  const createTime = createTimeOf(row)
  const updateTime = changeTime > createTime ? changeTime : createTime
  return { uid: `${artifact}@${version}`, name, version, description, createTime, updateTime, sizeBytes }
}
