// Index of search terms: the terms of each advisory, the number of advisories with each term in each scope, and the suffixes of
// terms. Rows are inserted in the order of their keys, so that neighboring rows are written together.
import { insertsOf } from '#db/bulk.ts'
import { scopeKeysOf } from '#db/listing.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { top } from '#lib/uid.ts'
import { rare, searched, suffixesOf, type Term } from './advisory-terms.model.ts'

/**
 * An advisory with its terms before and after a change. A new advisory has no terms before the change. A deleted advisory has no
 * terms and no text after the change.
 */
export type Indexed = {
  uid: string
  id: number
  text: string | undefined
  before: readonly Term[]
  after: readonly Term[]
}

const valuesAtOnce = 200

/** Number that the counter of changes has in place of a term. Numbers of terms begin with 1. */
const changes = 0

/** Updates the index for changed advisories, in the transaction of the change. */
export async function indexAdvisories(tx: Tx, changed: readonly Indexed[]): Promise<void> {
  const moves = changed.flatMap(({ uid, id, before, after }) => [
    ...missingFrom(before, after).map((term) => ({ uid, id, key: keyOf(term), term, by: 1 })),
    ...missingFrom(after, before).map((term) => ({ uid, id, key: keyOf(term), term, by: -1 })),
  ])
  const ids = await idsOf(tx, new Map(moves.map(({ key, term }) => [key, term])))
  const added = moves.filter(({ by }) => by > 0)
  await insertRows(
    tx,
    sql`INSERT INTO advisory_postings (term_id, uid, id)`,
    added
      .map(({ key, uid, id }) => ({ term: ids.get(key)!, uid, id }))
      .sort((a, b) => a.term - b.term)
      .map(({ term, uid, id }) => sql`(${term}, ${uid}, ${id})`),
  )
  for (const { key, uid } of moves.filter(({ by }) => by < 0)) {
    await tx.run(sql`DELETE FROM advisory_postings WHERE term_id = ${ids.get(key)!} AND uid = ${uid}`)
  }
  await count(
    tx,
    moves.flatMap(({ key, term, uid, by }) => (rare.has(term.facet) ? [] : [{ term: ids.get(key)!, uid, by }])),
  )
  await insertRows(
    tx,
    sql`INSERT INTO advisory_texts (uid, text)`,
    changed.flatMap(({ uid, text }) => (text === undefined ? [] : [sql`(${uid}, ${text})`])),
    sql`ON CONFLICT (uid) DO UPDATE SET text = excluded.text`,
  )
  for (const { uid, text } of changed) {
    if (text === undefined) await tx.run(sql`DELETE FROM advisory_texts WHERE uid = ${uid}`)
  }
}

const keyOf = ({ facet, value }: Term): string => `${facet} ${value}`

/** The terms of `all` that `some` does not have. */
function missingFrom(some: readonly Term[], all: readonly Term[]): Term[] {
  if (some.length === 0) return [...all]
  const known = new Set(some.map(keyOf))
  return all.filter((term) => !known.has(keyOf(term)))
}

/** IDs of terms by their keys. Inserts terms that do not exist yet. */
async function idsOf(tx: Tx, terms: ReadonlyMap<string, Term>): Promise<Map<string, number>> {
  const ids = new Map<string, number>()
  const byFacet = Map.groupBy(terms.values(), ({ facet }) => facet)
  for (const [facet, ofFacet] of byFacet) {
    for (const some of chunks(ofFacet, valuesAtOnce)) {
      const values = some.map(({ value }) => value)
      for (const { id, value } of await findTerms(tx, facet, values)) ids.set(keyOf({ facet, value }), id)
    }
  }
  const fresh = [...terms].filter(([key]) => !ids.has(key)).map(([, term]) => term)
  // Another transaction may insert the same term at the same time. PostgreSQL then repeats this transaction.
  const added = sql`ON CONFLICT (facet, value) DO NOTHING RETURNING id, facet, value`
  const rows = fresh.map(({ facet, value }) => sql`(${facet}, ${value})`)
  for (const insert of insertsOf(sql`INSERT INTO advisory_terms (facet, value)`, rows, added)) {
    for (const term of await tx.all<Term & { id: number }>(insert)) ids.set(keyOf(term), Number(term.id))
  }
  const suffixes = fresh
    .filter(({ facet }) => searched.has(facet))
    .flatMap((term) => suffixesOf(term.value).map((suffix) => ({ suffix, id: ids.get(keyOf(term))! })))
    .sort((a, b) => (a.suffix < b.suffix ? -1 : a.suffix > b.suffix ? 1 : 0))
  await insertRows(
    tx,
    sql`INSERT INTO advisory_suffixes (suffix, term_id)`,
    suffixes.map(({ suffix, id }) => sql`(${suffix}, ${id})`),
  )
  return ids
}

/** Adds up the changes first. An import changes the count of a term many times, and each scope has one row for each term. */
async function count(tx: Tx, moves: readonly { term: number; uid: string; by: number }[]): Promise<void> {
  const totals = new Map<string, { term: number; scope: string; by: number }>()
  for (const { term, uid, by } of moves) {
    for (const scope of scopeKeysOf(uid)) {
      const key = `${term} ${scope}`
      const total = totals.get(key)
      if (total) total.by += by
      else totals.set(key, { term, scope, by })
    }
  }
  totals.set('changes', { term: changes, scope: top, by: 1 })
  const rows = [...totals.values()].filter(({ by }) => by !== 0).sort((a, b) => a.term - b.term)
  await insertRows(
    tx,
    sql`INSERT INTO advisory_term_counts (term_id, place, shard, total)`,
    rows.map(({ term, scope, by }) => sql`(${term}, ${scope}, ${tx.shard}, ${by})`),
    sql`ON CONFLICT (term_id, place, shard) DO UPDATE SET total = advisory_term_counts.total + excluded.total`,
  )
}

/** Counter that grows with each change of the index, on any server. */
export async function changeCount(reader: Reader): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT CAST(coalesce(sum(total), 0) AS BIGINT) AS total
      FROM advisory_term_counts WHERE term_id = ${changes} AND place = ${top}`)
  return Number(row?.total ?? 0)
}

/** Terms with these values that an advisory has or had. */
export async function findTerms(
  reader: Reader,
  facet: number,
  values: readonly string[],
): Promise<{ id: number; value: string }[]> {
  const found = await reader.all<{ id: number; value: string }>(sql`
    SELECT id, value FROM advisory_terms WHERE facet = ${facet} AND value IN (${list(values)})`)
  return found.map(({ id, value }) => ({ id: Number(id), value }))
}

async function insertRows(tx: Tx, into: Sql, rows: readonly Sql[], then?: Sql): Promise<void> {
  for (const insert of insertsOf(into, rows, then)) await tx.run(insert)
}
