// Index of names by each of their parts. `search_parts` has a row for each character of a name and each scope in which the name
// is found. The row has the name from this character on, so that a search is a range of the index, and every row of the range is
// a match. `scope` is the number of a group, or 0 for the whole server. Only a background job writes rows (`write-index.store.ts`).

import { insertsOf } from '#db/bulk.ts'
import { type SearchKind, searchKinds } from '#db/search-queue.ts'
import { join, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { partsOf } from '#lib/lists/search-text.ts'

export { type SearchKind, searchKinds } from '#db/search-queue.ts'

/** Number of the scope that has everything. */
export const everything = 0

const afterAll = '\u{10ffff}'

/** Row that is found: its kind, number and names, and the numbers of the scopes in which it is found. */
export type Searchable = { kind: SearchKind; id: number; names: readonly string[]; scopes: readonly number[] }

/** Adds names to the index. */
export async function addSearchParts(tx: Tx, all: readonly Searchable[]): Promise<void> {
  const rows = all.flatMap(({ kind, id, names, scopes }) => {
    const parts = new Map(names.flatMap(partsOf).map((one) => [`${one.standing} ${one.part}`, one]))
    return scopes.flatMap((scope) =>
      [...parts.values()].map(({ standing, part }) => sql`(${kind}, ${scope}, ${standing}, ${part}, ${id})`),
    )
  })
  const into = sql`INSERT INTO search_parts (kind, scope, standing, part, id)`
  for (const insert of insertsOf(into, rows, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
}

/** Adds names of packages, which are found in their organization and in the whole server. */
export async function addPackages(
  tx: Tx,
  organization: number,
  packages: readonly { id: number; name: string }[],
): Promise<void> {
  const scopes = [everything, organization]
  const all = packages.map(({ id, name }) => ({ kind: searchKinds.packages, id, names: [name], scopes }))
  await addSearchParts(tx, all)
}

/** Removes all names of some rows from the index. */
export async function removeSearchParts(tx: Tx, kinds: readonly SearchKind[], ids: readonly number[]): Promise<void> {
  await tx.run(sql`DELETE FROM search_parts WHERE kind IN (${list(kinds)}) AND id IN (${list(ids)})`)
}

/** Numbers of groups by uid. Uids that are not the uid of a group are left out. */
export async function groupNumbers(reader: Reader, groups: readonly string[]): Promise<Map<string, number>> {
  if (groups.length === 0) return new Map()
  const rows = await reader.all<{ uid: string; id: number }>(sql`
    SELECT uid, id FROM groups WHERE uid IN (${list(groups)})`)
  return new Map(rows.map(({ uid, id }) => [uid, id]))
}

/** Range of the index: parts with this standing that begin with `text`, or that are equal to it. */
export type PartRange = { standing: number; text: string; isWhole: boolean }

/** Row of the index. */
export type PartRow = { part: string; id: number }

/** Rows of a range in some scopes after `after`, in order. Reads at most `most` rows of each scope. */
export async function readParts(
  reader: Reader,
  kind: SearchKind,
  scopes: readonly number[],
  range: PartRange,
  { after, most }: { after: PartRow | undefined; most: number },
): Promise<PartRow[]> {
  if (scopes.length === 0) return []
  const each = scopes.map((scope) => partsIn(kind, scope, range, after, most))
  const query = each.length === 1 ? each[0]! : sql`${join(each, ' UNION ALL ')} ORDER BY part, id LIMIT ${most}`
  return reader.all<PartRow>(query)
}

function partsIn(
  kind: SearchKind,
  scope: number,
  { standing, text, isWhole }: PartRange,
  after: PartRow | undefined,
  most: number,
): Sql {
  // SQLite searches only by the first of two lower bounds, so there is only one.
  const from = after ? sql`(part, id) > (${after.part}, ${after.id})` : sql`part >= ${text}`
  const bounds = isWhole ? sql`part = ${text} AND id > ${after?.id ?? -1}` : sql`${from} AND part < ${text + afterAll}`
  return sql`SELECT * FROM (
    SELECT part, id FROM search_parts
     WHERE kind = ${kind} AND scope = ${scope} AND standing = ${standing} AND ${bounds}
     ORDER BY part, id LIMIT ${most}) AS matches`
}
