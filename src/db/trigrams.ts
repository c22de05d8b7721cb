// Search for a text anywhere in a name, ignoring case. An index finds the candidates. `trigrams` has a row for each three
// consecutive characters of a text. The end of a text is padded, so that a search for one or two characters is a search for a
// prefix. `trigram_counts` has the number of texts that contain each sequence of one, two or three characters. So the cost of a
// search is known in advance.

import { insertsOf } from './bulk.ts'
import { list, type Reader, raw, type Sql, sql, type Tx } from './sql.ts'

/** Row of any table, and the text that a search finds it by. */
export type Searchable = { id: number; text: string }

/** Rows that a search has to check. */
export type Candidates = {
  /** Query for the `id` of each candidate, without duplicates. Contains all matches, and may contain other rows. */
  ids(range?: IdRange): Sql
  /** Number of candidates. */
  total: number
  /** True if every candidate is a match. */
  exact: boolean
}

/** Range of IDs greater than `above`, up to and including `upTo`. */
export type IdRange = { above: number; upTo: number }

/** Padding at the end of a text. It sorts before every character that can be searched for. */
const filler = '\u0001'
const afterAll = '\u{10ffff}'
/** Maximum number of trigrams from which the rarest is chosen. More would hardly improve the choice. */
const maxGrams = 50

/** Makes rows searchable. Call it in the transaction that inserts them. `kind` separates tables, or parts of one table. */
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

/** Candidates that may contain `text`, found by its rarest trigram. `text` must not be empty. */
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

/** Condition that `column` contains `text`. The column must be in lower case. */
export function holds(column: Sql, text: string): Sql {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  return sql`${column} LIKE ${pattern} ESCAPE '\\'`
}

/** Character sequences of the given lengths in a text, in lower case and without duplicates. */
function gramsOf(text: string, lengths: readonly number[]): Set<string> {
  const characters = [...text.toLowerCase()]
  const grams = new Set<string>()
  for (const length of lengths) {
    for (let at = 0; at + length <= characters.length; at++) grams.add(characters.slice(at, at + length).join(''))
  }
  return grams
}
