// Search for a text anywhere in a name, regardless of case; an index finds the candidates. `trigrams` has the rows for each three
// consecutive characters of a text. The end of a text is padded, so that one or two characters are found as the beginning of
// three. `trigram_counts` has the number of rows in which one, two or three characters occur, so that the cost of a search is
// known beforehand.

import { insertsOf } from './bulk.ts'
import { list, type Reader, raw, type Sql, sql, type Tx } from './sql.ts'

/** A row of any table with the text that it is found by. */
export type Searchable = { id: number; text: string }

/** Rows that a search reads. */
export type Candidates = {
  /** Selects `id` of the candidates, each once: all the matches, and perhaps more. */
  ids(range?: IdRange): Sql
  /** Number of candidates. */
  total: number
  /** True if every candidate is a match. */
  exact: boolean
}

/** Ids above `above` and up to `upTo`. */
export type IdRange = { above: number; upTo: number }

/** Fills up the end of a text; it sorts before whatever can be asked for. */
const filler = '\u0001'
const afterAll = '\u{10ffff}'
/** More trigrams would not improve the choice of the rarest. */
const maxGrams = 50

/** Adds rows to the search. Call it in the transaction that inserts them; `kind` separates tables, or parts of one. */
export async function addTexts(tx: Tx, kind: string, rows: readonly Searchable[]): Promise<void> {
  const found = rows.flatMap(({ id, text }) => {
    return [...gramsOf(text + filler.repeat(2), [3])].map((gram) => sql`(${kind}, ${gram}, ${id})`)
  })
  for (const insert of insertsOf(sql`INSERT INTO trigrams (kind, gram, id)`, found)) await tx.run(insert)
  await count(tx, kind, rows)
}

async function count(tx: Tx, kind: string, rows: readonly Searchable[]): Promise<void> {
  const totals = new Map<string, number>()
  for (const { text } of rows) {
    for (const gram of gramsOf(text, [1, 2, 3])) totals.set(gram, (totals.get(gram) ?? 0) + 1)
  }
  const counted = [...totals].map(([gram, total]) => sql`(${kind}, ${gram}, ${tx.shard}, ${total})`)
  const into = sql`INSERT INTO trigram_counts (kind, gram, shard, total)`
  const add = sql`ON CONFLICT (kind, gram, shard) DO UPDATE SET total = trigram_counts.total + excluded.total`
  for (const insert of insertsOf(into, counted, add)) await tx.run(insert)
}

/** Candidates that may contain `text`, by the rarest of its parts; `text` must not be empty. */
export async function candidatesOf(reader: Reader, kind: string, text: string): Promise<Candidates> {
  const characters = [...text.toLowerCase()]
  const short = characters.length < 3
  const grams = short ? [characters.join('')] : [...gramsOf(text, [3])].slice(0, maxGrams)
  const counted = await reader.all<{ gram: string; total: number }>(sql`
    SELECT gram, CAST(sum(total) AS BIGINT) AS total
      FROM trigram_counts WHERE kind = ${kind} AND gram IN (${list(grams)}) GROUP BY gram`)
  const totals = new Map(counted.map(({ gram, total }) => [gram, total]))
  const [rarest] = grams.map((gram) => ({ gram, total: totals.get(gram) ?? 0 })).sort((a, b) => a.total - b.total)
  const { gram, total } = rarest!
  const held = short ? sql`gram > ${gram} AND gram < ${gram + afterAll}` : sql`gram = ${gram}`
  const ids = (range?: IdRange): Sql => {
    const within = range ? sql`AND id > ${range.above} AND id <= ${range.upTo}` : sql``
    return sql`SELECT ${raw(short ? 'DISTINCT id' : 'id')} FROM trigrams WHERE kind = ${kind} AND ${held} ${within}`
  }
  return { ids, total, exact: characters.length <= 3 }
}

/** Condition that `column`, which has text in lower case, contains `text`. */
export function holds(column: Sql, text: string): Sql {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  return sql`${column} LIKE ${pattern} ESCAPE '\\'`
}

/** Every run of that many characters, each once, in lower case. */
function gramsOf(text: string, lengths: readonly number[]): Set<string> {
  const characters = [...text.toLowerCase()]
  const grams = new Set<string>()
  for (const length of lengths) {
    for (let at = 0; at + length <= characters.length; at++) grams.add(characters.slice(at, at + length).join(''))
  }
  return grams
}
