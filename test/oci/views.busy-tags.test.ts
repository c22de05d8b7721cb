// Frequently updated tags: finding their digest in a view takes a limited number of queries, for any number of updates.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Reader, sql } from '#db/sql.ts'
import { resolveTag } from '#domains/policy/views/resolve.service.ts'
import { tagNamesAs } from '#domains/policy/views/view-lists.service.ts'
import { findRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { plantManifest } from '../support/tags.ts'

const hour = 3_600_000
const day = 24 * hour
const start = Date.parse('2026-01-01T00:00:00.000Z')
const iso = (days: number): string => new Date(start + days * day).toISOString()
const moves = 100_000

let pinfold: Pinfold
let repo: RepoRow
const digests: string[] = []
before(async () => {
  pinfold = await startPinfold()
  const org = await pinfold.seed.group()
  const { uid } = await pinfold.seed.repo(org.uid)
  for (const name of ['good', 'bad', 'worse']) digests.push(await plantManifest(pinfold, uid, name))
  repo = (await findRepoRow(pinfold.app.db, { uid }))!
})
after(() => pinfold[Symbol.asyncDispose]())

/** A good image for a day, and then `count` updates between two digests, some seconds apart. */
async function writeBusy(tag: string, from: number, count: number, secondsApart: number, texts: [string, string]) {
  const [good] = digests
  const at = (i: number) => new Date(start + from * day + i * secondsApart * 1000).toISOString()
  const rows = [
    { time: iso(from - 1), digest: good! },
    ...Array.from({ length: count }, (_, i) => ({ time: at(i), digest: texts[i % 2]! })),
  ]
  await writeRows(repo, tag, rows)
}

type Written = { time: string; digest: string }

async function writeRows({ ledger }: RepoRow, tag: string, rows: readonly Written[]): Promise<void> {
  // All rows in one parameter, because there are very many.
  const json = JSON.stringify(rows)
  const { db } = pinfold.app
  const read =
    db.engine === 'sqlite'
      ? sql`SELECT json_extract(value, '$.time') AS time, json_extract(value, '$.digest') AS digest FROM json_each(${json})`
      : sql`SELECT value->>'time' AS time, value->>'digest' AS digest FROM json_array_elements(CAST(${json} AS JSON))`
  await db.tx((tx) =>
    tx.run(sql`
      INSERT INTO tag_history (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
      SELECT CAST(${ledger} AS BIGINT), CAST(${tag} AS TEXT), r.time, 2, r.digest, '', '', 0, '', 1
        FROM (${read}) AS r`),
  )
  // Otherwise the plans of PostgreSQL depend on its automatic statistics of the new rows.
  if (db.engine === 'postgres') await db.tx((tx) => tx.run(sql`ANALYZE tag_history`))
}

/** Reader that counts the statements that it runs. */
function counting(): { reader: Reader; asked: () => number } {
  let asked = 0
  const { db } = pinfold.app
  const reader: Reader = {
    all(query) {
      asked++
      return db.all(query)
    },
    get(query) {
      asked++
      return db.get(query)
    },
  }
  return { reader, asked: () => asked }
}

test('a tag with a hundred thousand updates in a few days resolves to the last good digest before them', async () => {
  const [good, bad, worse] = digests as [string, string, string]
  await writeBusy('busy', 10, moves, 6, [bad, worse])
  for (const [until, minDays, expected] of [
    [iso(17), 7, good],
    [iso(17), 2, good],
    [iso(16), 1, good],
    [iso(10), 1, good],
  ] as const) {
    const { reader, asked } = counting()
    const age = { ms: minDays * day, hold: 6 * hour, countFrom: 'tag' as const }
    const { chosen } = await resolveTag(reader, repo, 'busy', { until, age })
    assert.equal(chosen?.digest, expected, `${until} ${minDays}`)
    assert.ok(asked() <= 100, `${asked()} statements`)
  }
})

test('serves a good digest among a hundred thousand rollbacks, with one query for each point in time', async () => {
  const [good, bad] = digests as [string, string, string]
  await writeBusy('rolling', 10, moves, 6, [bad, good])
  const { reader, asked } = counting()
  const age = { ms: 7 * day, hold: 6 * hour, countFrom: 'tag' as const }
  const { chosen } = await resolveTag(reader, repo, 'rolling', { until: iso(16.9), age })
  assert.equal(chosen?.digest, good)
  assert.ok(asked() <= 20, `${asked()} statements`)
  const then = counting()
  assert.equal((await resolveTag(then.reader, repo, 'rolling', { until: iso(12), age: undefined })).chosen?.digest, bad)
  assert.equal(then.asked(), 1)
})

test('a list skips tags with very many updates with a few queries', async () => {
  const { reader, asked } = counting()
  const age = { ms: 7 * day, hold: 6 * hour, countFrom: 'tag' as const }
  for (const question of [
    { until: iso(17), age: undefined },
    { until: iso(17), age },
  ]) {
    const listing = { until: question.until, of: () => question }
    const { names } = await tagNamesAs(reader, repo, listing, { last: '', most: 1000 })
    assert.deepEqual(names, ['busy', 'rolling'])
  }
  assert.ok(asked() <= 200, `${asked()} statements`)
})

test('limits the queries for a tag whose digests were all rolled back repeatedly', async () => {
  const { uid } = await pinfold.seed.repo((await pinfold.seed.group()).uid)
  const names = Array.from({ length: 40 }, (_, i) => `undone-${i}`)
  const own: string[] = []
  for (const name of names) own.push(await plantManifest(pinfold, uid, name))
  const minute = 60_000
  // Each digest first for some minutes, which is too short to count, and then for hours, until a former digest returns.
  const short = own.map((digest, i) => ({ at: i * 10 * minute, digest }))
  const undone = Array.from({ length: 6000 }, (_, i) => ({
    at: day + i * 2 * hour,
    digest: own[(i * 7) % own.length]!,
  }))
  const first = (await findRepoRow(pinfold.app.db, { uid }))!
  const rows = [...short, ...undone].map(({ at, digest }) => ({ time: new Date(start + at).toISOString(), digest }))
  await writeRows(first, 'undone', rows)
  const { reader, asked } = counting()
  const age = { ms: 7 * day, hold: hour, countFrom: 'tag' as const }
  const resolved = await resolveTag(reader, first, 'undone', { until: iso(502), age })
  assert.equal(resolved.chosen, undefined)
  assert.ok(asked() <= 3200, `${asked()} statements`)
})
