import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterKey, countAt, direction, type Keys, type Listing, mergedPage, scopeQuery } from '#db/listing.ts'
import { ident, join, list, type Reader, type Sql, sql } from '#db/sql.ts'
import { type Candidates, candidatesOf, holds, type IdRange } from '#db/trigrams.ts'
import type { Page } from '#lib/lists/paging.ts'
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

/** Search index of the libraries of one ecosystem. */
export const searchKind = (ecosystem: Ecosystem): string => `${kind}.${ecosystem}`

/** A list of libraries, and a text in lower case that names must contain. An empty text matches all names. */
export type Scope = { ecosystem: Ecosystem; catalogScope: string; text: string }

/** A page of libraries and one more row, and the number of matches. */
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

export function countArtifacts(reader: Reader, catalogScope: string): Promise<number> {
  return countAt(reader, kind, [catalogScope])
}

async function searchIn(reader: Reader, scope: Scope, page: Page): Promise<{ total: number; query: Sql }> {
  const { ecosystem, catalogScope, text } = scope
  const listed = await countArtifacts(reader, catalogScope)
  if (text === '' || listed === 0) return { total: listed, query: scopeQuery(listing, catalogScope, page) }

  const candidates = await candidatesOf(reader, searchKind(ecosystem), text)
  const counted = candidates.exact && catalogScope === ecosystem ? candidates.total : undefined
  const { total, ids } =
    counted !== undefined && counted > fewMatches
      ? { total: counted, ids: undefined }
      : await findMatches(reader, scope, candidates)
  return { total, query: ids ? fromIds(ids, page) : scopeQuery(listing, catalogScope, page, [holds(name, text)]) }
}

/**
 * Limit on the matches that are read and sorted. If there are more matches, reading the list in order finds the first matches
 * quickly.
 */
const fewMatches = 500
/** Number of candidates that are read before the search yields to other requests. */
const candidatesPerTurn = 2000

const name = sql`lower(t.name)`

/** Number of matching candidates. If there are few matches, also their ids. */
async function findMatches(reader: Reader, { ecosystem, catalogScope, text }: Scope, candidates: Candidates) {
  // If the list has only a part of the ecosystem's libraries, the query checks for each candidate if the list contains it.
  const listed = sql`EXISTS (
    SELECT 1 FROM list_keys k
     WHERE k.list = ${`${kind}.uid`} AND k.place = ${catalogScope} AND k.value = t.uid AND k.uid = t.uid)`
  const conditions = join([holds(name, text), ...(catalogScope === ecosystem ? [] : [listed])], ' AND ')
  const ids: number[] = []
  let total = 0
  for (const range of await rangesOf(reader, candidates.total)) {
    const rows = await reader.all<{ id: number }>(sql`
      SELECT t.id FROM (${candidates.ids(range)}) AS c JOIN artifacts t ON t.id = c.id WHERE ${conditions}`)
    total += rows.length
    if (total <= fewMatches) for (const { id } of rows) ids.push(id)
    if (range) await nextTurn()
  }
  return { total, ids: total <= fewMatches ? ids : undefined }
}

/** Ranges of ids with about the same number of candidates. If there are few candidates, one range without bounds. */
async function rangesOf(reader: Reader, candidates: number): Promise<(IdRange | undefined)[]> {
  const parts = Math.ceil(candidates / candidatesPerTurn)
  if (parts <= 1) return parts === 0 ? [] : [undefined]
  const { last } = (await reader.get<{ last: number }>(sql`SELECT max(id) AS last FROM artifacts`))!
  const size = Math.ceil(last / parts)
  return Array.from({ length: parts }, (_, i) => ({ above: i * size, upTo: (i + 1) * size }))
}

function fromIds(ids: readonly number[], page: Page): Sql {
  // The number of ids is padded to a power of two, because each number of ids is a separate prepared statement.
  const padded = [...ids, ...Array<number>(2 ** Math.ceil(Math.log2(ids.length || 1)) - ids.length).fill(ids[0] ?? 0)]
  const column = ident(`t.${page.order.column}`)
  const dir = direction(page)
  return sql`
    SELECT ${columns}
      FROM artifacts t
     WHERE t.id IN (${list(padded)}) AND ${afterKey(page, column, sql`t.uid`)}
     ORDER BY ${column} ${dir}, t.uid ${dir}`
}

type Found = Artifact & { id: number }

export function findArtifact(reader: Reader, uid: string): Promise<Found | undefined> {
  return reader.get<Found>(sql`SELECT t.id, ${columns} FROM artifacts t WHERE t.uid = ${uid}`)
}

export const versionColumns = sql`
  v.version, v.description, v.size_bytes AS "sizeBytes", v.remediated, v.release_time AS "releaseTime",
  v.change_time AS "changeTime", v.first_time AS "firstTime"`

/** A page of versions and one more row, in the version order of the ecosystem. */
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
  const remediated = Boolean(row.remediated)
  return { uid: `${artifact}@${version}`, name, version, description, createTime, updateTime, sizeBytes, remediated }
}
