// Compares the keys, terms and counters of advisory lists with the advisories themselves.
import assert from 'node:assert/strict'
import { sql } from '#db/sql.ts'
import type { Json, Pinfold } from './pinfold.ts'

const columns = ['advisory_id', 'artifact_name', 'create_time', 'update_time', 'alias_order']
/** Facets that have no counters for their terms. */
const rare = [1, 2]

/** Scopes that count a row: the whole server, each group above it, and its direct parent. */
function scopesOf(uid: string): string[] {
  const segments = uid.split('/')
  const above = segments.slice(0, -1).map((_, i) => segments.slice(0, i + 1).join('/'))
  return ['/', ...above, `${above.at(-1)}:`]
}

export async function checkAdvisories({ app: { db } }: Pick<Pinfold, 'app'>): Promise<void> {
  const advisories = await db.all<Json>(sql`SELECT * FROM advisories`)
  const expected = advisories.flatMap((one) =>
    columns.flatMap((column) => {
      return scopesOf(one.uid).map((scope) => JSON.stringify([`advisories.${column}`, scope, one[column], one.uid]))
    }),
  )
  const keys = await db.all<Json>(
    sql`SELECT list, place AS scope, value, uid FROM list_keys WHERE list LIKE 'advisories.%'`,
  )
  assert.deepEqual(
    keys.map(({ list, scope, value, uid }) => JSON.stringify([list, scope, value, uid])).sort(),
    expected.sort(),
  )

  const totals = await db.all<Json>(
    sql`SELECT place AS scope, sum(total) AS total FROM list_counts WHERE kind = 'advisories' GROUP BY place`,
  )
  assert.deepEqual(
    countsOf(totals.map(({ scope, total }) => [scope, total])),
    tally(advisories.flatMap(({ uid }) => scopesOf(uid))),
  )

  const uids = new Set(advisories.map(({ uid }) => uid))
  const texts = await db.all<Json>(sql`SELECT uid FROM advisory_texts`)
  assert.deepEqual(new Set(texts.map(({ uid }) => uid)), uids)
  const postings = await db.all<Json>(sql`
    SELECT p.uid, p.term_id AS term, t.facet FROM advisory_postings p JOIN advisory_terms t ON t.id = p.term_id`)
  for (const { uid } of postings) assert.ok(uids.has(uid), `${uid} is gone, and is found all the same`)
  const counted = postings.filter(({ facet }) => !rare.includes(Number(facet)))
  const counts = await db.all<Json>(sql`
    SELECT term_id AS term, place AS scope, sum(total) AS total FROM advisory_term_counts WHERE term_id > 0 GROUP BY term_id, place`)
  assert.deepEqual(
    countsOf(counts.map(({ term, scope, total }) => [`${term} ${scope}`, total])),
    tally(counted.flatMap(({ uid, term }) => scopesOf(uid).map((scope) => `${term} ${scope}`))),
  )
}

function countsOf(rows: readonly (readonly [string, unknown])[]): Record<string, number> {
  return Object.fromEntries(
    rows.map(([key, total]) => [key, Number(total)] as const).filter(([, total]) => total !== 0),
  )
}

function tally(keys: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}
