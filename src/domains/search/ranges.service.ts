// Reads results from ranges of an index, in pages.
import { chunks } from '#lib/chunks.ts'
import { compareTexts } from '#lib/lists/paging.ts'
import { partsOf, type Rank, standings, startOf } from '#lib/lists/search-text.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import type { PartRange } from './parts.store.ts'
import { mostSorted, type Result } from './search.model.ts'

/** Row of an index: its key, and a tie-breaker for equal keys. */
export type IndexRow = { key: string; tie: string | number }

/** Result, and where the next page continues after it. */
export type Found = { result: Result; at: string }

/** Some results. `next` is where the source continues, and is undefined at its end. */
export type Chunk = { found: Found[]; next: string | undefined }

/** Range of an index. `load` returns the result of each row, or undefined for a row that is not a result. */
export type Range<R extends IndexRow> = {
  rows(after: IndexRow | undefined, most: number): Promise<R[]>
  load(rows: readonly R[]): Promise<(Result | undefined)[]>
}

/** Cursor: after a result in the order of updates, or after a row in the order of the index. */
type Cursor = { by: 'time'; time: string; id: string } | { by: 'key'; key: string; tie: string | number }

/** Most rows that are read at once in the order of the index. Some of them may not be results. */
const rowsAtOnce = 400

export const nothing: Chunk = { found: [], next: undefined }

/**
 * Results of a range after a position, at most `most`. Few results are sorted by their last update. Many are in the order of the
 * index. A chunk can be empty and still have a next one.
 */
export async function readRange<R extends IndexRow>(range: Range<R>, after: string, most: number): Promise<Chunk> {
  const cursor = after === '' ? undefined : (JSON.parse(after) as Cursor)
  if (cursor?.by !== 'key') {
    const rows = await range.rows(undefined, mostSorted + 1)
    if (rows.length <= mostSorted) return byTime(await range.load(rows), cursor, most)
  }
  const from = cursor?.by === 'key' ? cursor : undefined
  const rows = await range.rows(from, rowsAtOnce)
  const found: Found[] = []
  const seen = new Set<string>()
  for (const [i, result] of (await range.load(rows)).entries()) {
    if (!result || seen.has(idOf(result))) continue
    seen.add(idOf(result))
    const { key, tie } = rows[i]!
    found.push({ result, at: positionOf({ by: 'key', key, tie }) })
    if (found.length === most) return { found, next: found.at(-1)!.at }
  }
  const last = rows.length < rowsAtOnce ? undefined : rows.at(-1)!
  return { found, next: last && positionOf({ by: 'key', key: last.key, tie: last.tie }) }
}

function byTime(results: readonly (Result | undefined)[], cursor: Cursor | undefined, most: number): Chunk {
  const distinct = new Map(results.flatMap((one) => (one ? [[idOf(one), one]] : [])))
  const sorted = [...distinct.values()].sort(compare)
  const isAfter = (one: Result) => cursor?.by !== 'time' || compareTo(one, cursor) > 0
  const left = sorted.filter(isAfter)
  const found = left.slice(0, most).map((result) => {
    return { result, at: positionOf({ by: 'time', time: result.updateTime, id: idOf(result) }) }
  })
  return { found, next: left.length > most ? found.at(-1)!.at : undefined }
}

const positionOf = (cursor: Cursor): string => JSON.stringify(cursor)

const idOf = ({ kind, uid, repoUid, name }: Result): string =>
  uid === '' && kind === 'digest' ? repoUid + name : uid || name

const compare = (a: Result, b: Result): number => compareTo(a, { time: b.updateTime, id: idOf(b) })

/** Order of results: the latest update first, then by uid or name. */
function compareTo(one: Result, { time, id }: { time: string; id: string }): number {
  return compareTexts(time, one.updateTime) || compareTexts(idOf(one), id)
}

/** The first rows of some scopes, in order. `read` returns them for at most `atOnce` scopes. */
export async function rowsOfScopes<S, R extends IndexRow>(
  scopes: readonly S[],
  { atOnce, most }: { atOnce: number; most: number },
  read: (some: readonly S[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const rows: R[] = []
  for (const some of chunks(scopes, atOnce)) rows.push(...(await read(some)))
  return scopes.length > atOnce ? rows.sort(compareRows).slice(0, most) : rows
}

function compareRows(a: IndexRow, b: IndexRow): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1
  return a.tie === b.tie ? 0 : a.tie < b.tie ? -1 : 1
}

/** True if a node is in one of the scopes. An empty uid is in none. */
export const isIn = (uid: string, scopes: readonly string[]): boolean =>
  uid !== '' && scopes.some((scope) => isAtOrBelow(uid, scope))

const standingOf: Readonly<Record<Rank, number>> = {
  exact: standings.start,
  prefix: standings.start,
  word: standings.word,
  part: standings.inside,
}

/** Range of the index of names that has all matches of a text with this rank. */
export function partRangeOf(text: string, rank: Rank): PartRange {
  const part = startOf(text)
  return { standing: standingOf[rank], text: part, isWhole: rank === 'exact' && part === text }
}

/** True if `key` is the first of the parts of the names that are in the range. A name can contain the text several times. */
export function isFirstPart(names: readonly string[], { standing, text }: PartRange, key: string): boolean {
  const matching = names.flatMap(partsOf).filter((one) => one.standing === standing && one.part.startsWith(text))
  return matching.every((one) => one.part >= key)
}
