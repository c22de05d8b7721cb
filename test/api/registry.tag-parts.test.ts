// Search for tags of a large repository by a part of their names. The index of parts, with the tags that are not in it yet, gives
// the same result as a scan of all names.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { insertsOf } from '#db/bulk.ts'
import { list, sql, type Tx } from '#db/sql.ts'
import { removeRepos } from '#domains/registry/deletions/removals.job.ts'
import { indexTags } from '#domains/registry/tags/index-tags.job.ts'
import { everyShape, shapeOf } from '#domains/registry/tags/tags.model.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { digestOf } from '../support/tags.ts'

const { pinfold, operator } = await startScene()
after(() => pinfold[Symbol.asyncDispose]())
const { db } = pinfold.app

const perSegment = 8192

/** The same numbers in each run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

let made = 0

class LargeRepo {
  readonly uid: string
  readonly id: number
  readonly names = new Set<string>()
  constructor(uid: string, id: number) {
    this.uid = uid
    this.id = id
  }
  static async make(): Promise<LargeRepo> {
    const org = await pinfold.seed.group('')
    const uid = (await pinfold.seed.repo(org.uid)).uid as string
    const { id } = (await db.get<{ id: number }>(sql`SELECT id FROM repos WHERE uid = ${uid}`))!
    return new LargeRepo(uid, id)
  }
  /** Writes straight into the table, because the API would take too long. */
  async add(names: readonly string[]): Promise<void> {
    const [digest, now] = [digestOf('an image'), pinfold.app.clock().toISOString()]
    const rows = [...new Set(names)]
      .filter((name) => !this.names.has(name))
      .map((name) => {
        this.names.add(name)
        const uid = `${this.uid}/${String(made++).padStart(16, '0')}`
        return sql`(${uid}, ${this.id}, ${name}, ${digest}, ${shapeOf(name)}, 0, '[]', ${now}, ${now}, ${now})`
      })
    const into = sql`INSERT INTO tags
      (uid, repo_id, name, digest, shape, deprecated, bundles, create_time, update_time, assign_time)`
    await db.tx(async (tx) => {
      for (const insert of insertsOf(into, rows)) await tx.run(insert)
      await this.#count(tx)
    })
  }
  async #count(tx: Tx): Promise<void> {
    await tx.run(sql`
      INSERT INTO list_counts (kind, place, shard, total) VALUES ('tags.0', ${this.uid}, 0, ${this.names.size})
          ON CONFLICT (kind, place, shard) DO UPDATE SET total = excluded.total`)
  }
  async delete(names: readonly string[]): Promise<void> {
    for (const name of names) this.names.delete(name)
    await db.tx(async (tx) => {
      for (let i = 0; i < names.length; i += 500) {
        const some = list(names.slice(i, i + 500))
        await tx.run(sql`DELETE FROM tags WHERE repo_id = ${this.id} AND name IN (${some})`)
      }
      await this.#count(tx)
    })
  }
  /** The names on all pages, and how many pages there were. */
  async search(query: Json): Promise<{ names: string[]; pages: number }> {
    const names: string[] = []
    let [pageToken, pages] = ['', 0]
    do {
      const asked = new URLSearchParams({ ...query, pageToken } as Record<string, string>)
      const page = ok(await operator.get(`/registry/v2/repos/${this.uid}/tags?${asked}`))
      names.push(...page.tags.map(({ name }: Json) => name))
      pageToken = page.nextPageToken as string
      pages++
    } while (pageToken !== '')
    return { names, pages }
  }
  having(part: string, prefix = '', shown = 0): string[] {
    return [...this.names]
      .filter((one) => one.startsWith(prefix) && one.toLowerCase().includes(part.toLowerCase()))
      .filter((one) => (shapeOf(one) & ~shown) === 0)
      .sort()
  }
  /** Number of segments in each index of the repository. */
  async indexes(): Promise<number[]> {
    const rows = await db.all<{ segments: number }>(sql`
      SELECT segments FROM tag_part_indexes WHERE repo_id = ${this.id} ORDER BY id`)
    return rows.map(({ segments }) => segments)
  }
}

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `build-${String(from + i).padStart(6, '0')}`)

test('one request finds the last matching tag of a large repository, or that no tag matches', async () => {
  const repo = await LargeRepo.make()
  await repo.add([...numbered(0, 3 * perSegment), 'zz-The.Last_one'])
  assert.ok((await repo.search({ part: 'last' })).pages > 1, 'without an index')
  assert.equal((await runJob(pinfold.app, indexTags)).segments, 3)
  const last = repo.having('the.last_')
  assert.equal(last.length, 1)
  for (const part of ['the.last_', 'LAST', 'zz', 'Z', '-the', 'zz-the.last_one']) {
    assert.deepEqual(await repo.search({ part }), { names: last, pages: 1 }, part)
  }
  for (const part of ['nowhere', 'build-x', '%', '_x', 'é', '0-0', 'x'.repeat(128)]) {
    assert.deepEqual(await repo.search({ part }), { names: [], pages: 1 }, part)
  }
  // A part of all names fills its pages, and so does a part at the end of the names only.
  for (const part of ['b', 'ui', 'uild-', '-02', '02457']) {
    const wanted = repo.having(part)
    const pages = Math.max(1, Math.ceil(wanted.length / 200))
    const found = await repo.search({ part, pageSize: '200' })
    assert.deepEqual(found.names, wanted, part)
    assert.ok(found.pages <= pages + 1, `${part} on ${found.pages} pages`)
  }
  assert.deepEqual((await repo.search({ prefix: 'build-02', part: '77' })).names, repo.having('77', 'build-02'))
})

test('finds tags that were pushed, deleted and recreated between index runs, like a full scan', async () => {
  const random = randomOf(7)
  const letters = (many: number, of: string) => Array.from({ length: many }, () => of[random(of.length)]).join('')
  const kinds = [
    () => `v${random(30)}.${random(30)}.${random(300)}${['', '-rc1', '-Beta.2', '_x'][random(4)]}`,
    () => letters(40, '0123456789abcdef'),
    () => `sha256-${letters(64, '0123456789abcdef')}.sig`,
    () => `Nightly-202${random(10)}0${1 + random(9)}${10 + random(18)}`,
    () => `${letters(3, 'abAB')}-r${random(3000)}`,
    () => letters(1 + random(8), 'aAbB._-'),
  ]
  const some = (many: number) => Array.from({ length: many }, () => kinds[random(kinds.length)]!())
  const repo = await LargeRepo.make()
  const gone: string[] = []
  for (let round = 0; round < 4; round++) {
    await repo.add(some(round === 0 ? 2 * perSegment : 7000))
    if (round > 0) {
      const there = [...repo.names]
      const dying = [...new Set(Array.from({ length: 1500 }, () => there[random(there.length)]!))]
      // The newest tags are deleted too, and SQLite gives their numbers to the next ones.
      await repo.delete([...dying, ...there.slice(-50)])
      gone.push(...dying)
      await repo.add([...some(40), ...gone.filter(() => random(3) === 0)])
    }
    await compare(repo, random)
    await runJob(pinfold.app, indexTags)
    await compare(repo, random)
  }
  assert.ok((await repo.indexes())[0]! >= 3)
})

async function compare(repo: LargeRepo, random: (below: number) => number): Promise<void> {
  const names = [...repo.names].sort()
  for (let n = 0; n < 16; n++) {
    const name = names[random(names.length)]!
    const from = random(name.length)
    const cut = name.slice(from, from + (random(8) === 0 ? 1 : 2 + random(7)))
    const part = [cut, cut.toUpperCase(), `${cut}${random(10)}`][random(3)]!
    const prefix = random(4) === 0 ? name.slice(0, 1 + random(3)) : ''
    const shown = random(2) === 0 ? 0 : everyShape
    const all = shown === 0 ? {} : { includeReferrers: 'true', includeDates: 'true', includeEpochs: 'true' }
    const wanted = repo.having(part, prefix, shown)
    const pageSize = wanted.length > 200 ? 200 : [3, 50, 200][wanted.length > 20 ? 1 + random(2) : random(3)]!
    const found = await repo.search({ part, prefix, ...all, pageSize: String(pageSize) })
    assert.deepEqual(found.names, wanted, `"${part}" behind "${prefix}", ${shown}`)
  }
}

test('finds new tags in SQLite although they reuse the row numbers of deleted tags', async () => {
  const repo = await LargeRepo.make()
  await repo.add(numbered(0, perSegment))
  await runJob(pinfold.app, indexTags)
  await repo.delete(numbered(perSegment - 100, perSegment))
  const fresh = Array.from({ length: 50 }, (_, i) => `fresh-${i}`)
  await repo.add(fresh)
  assert.deepEqual((await repo.search({ part: 'resh-', pageSize: '200' })).names, [...fresh].sort())
})

test('finds a tag with a lower row number than earlier tags of other repositories', async () => {
  const [repo, other] = [await LargeRepo.make(), await LargeRepo.make()]
  await repo.add(numbered(0, perSegment - 1))
  await other.add(['first', 'second'])
  const first = sql`SELECT id FROM tags WHERE repo_id = ${other.id} AND name = 'first'`
  const { id } = (await db.get<{ id: number }>(first))!
  await other.delete(['first'])
  await runJob(pinfold.app, indexTags)
  await repo.add(['late'])
  // The tag gets its number as if its transaction had started before the second one.
  await db.tx((tx) => tx.run(sql`UPDATE tags SET id = ${id} WHERE repo_id = ${repo.id} AND name = 'late'`))
  await other.add(['third'])
  await runJob(pinfold.app, indexTags)
  assert.deepEqual(await repo.indexes(), [1])
})

test('rebuilds an index with far more names than the repository has tags', async () => {
  const repo = await LargeRepo.make()
  await repo.add(numbered(0, 5 * perSegment))
  await runJob(pinfold.app, indexTags)
  assert.deepEqual(await repo.indexes(), [5])
  await repo.delete(numbered(0, 5 * perSegment - 10))
  assert.deepEqual((await repo.search({ part: '7' })).names, repo.having('7'))
  await repo.add(Array.from({ length: perSegment }, (_, i) => `next.${i}`))
  const { dropped } = await runJob(pinfold.app, indexTags)
  assert.deepEqual(await repo.indexes(), [1])
  assert.ok(dropped! > 5 * 128, `${dropped}`)
  assert.deepEqual((await repo.search({ part: '77' })).names, repo.having('77'))
})

test('finds names in order if they are close together in one index segment and far apart in another', async () => {
  const repo = await LargeRepo.make()
  await repo.add(['a-hit', ...Array.from({ length: perSegment - 1 }, (_, i) => `z-hit-${10_000 + i}`)])
  await repo.add(Array.from({ length: perSegment }, (_, i) => `b-${10_000 + i}${i % 64 === 0 ? '-hit' : ''}`))
  await runJob(pinfold.app, indexTags)
  assert.deepEqual((await repo.search({ part: '-hit', pageSize: '150' })).names, repo.having('-hit'))
})

test('a request scans a limited number of names, also without a match, and the next request continues', async () => {
  const repo = await LargeRepo.make()
  await repo.add(numbered(0, 2 * perSegment))
  await runJob(pinfold.app, indexTags)
  await repo.delete(numbered(0, 2 * perSegment - 1))
  assert.deepEqual(await repo.search({ part: 'build-' }), { names: repo.having('build-'), pages: 2 })
  // Each tag has the three characters of the search text in different places. The next request starts at a matching tag.
  const near = await LargeRepo.make()
  const names = Array.from({ length: 9 * perSegment - 1 }, (_, i) => `abc-bcd-${100_000 + i}`)
  names[8 * perSegment] += '-abcd'
  await near.add([...names, 'x-abcd'])
  await runJob(pinfold.app, indexTags)
  assert.deepEqual(await near.search({ part: 'abcd' }), { names: near.having('abcd'), pages: 2 })
})

/** Number of rows of an index in its tables, besides its own row. */
async function rowsOf(index: number): Promise<number> {
  const counted = await db.get<{ total: number }>(sql`
    SELECT (SELECT count(*) FROM tag_parts WHERE index_id = ${index}) +
           (SELECT count(*) FROM tag_part_names WHERE index_id = ${index}) +
           (SELECT count(*) FROM tag_part_segments WHERE index_id = ${index}) AS total`)
  return Number(counted!.total)
}
async function indexedRepo(): Promise<{ repo: LargeRepo; index: number }> {
  const repo = await LargeRepo.make()
  await repo.add(numbered(0, perSegment + 5))
  await runJob(pinfold.app, indexTags)
  const { id } = (await db.get<{ id: number }>(sql`SELECT id FROM tag_part_indexes WHERE repo_id = ${repo.id}`))!
  assert.ok((await rowsOf(id)) > 128)
  return { repo, index: id }
}
async function checkGone(repo: LargeRepo, index: number): Promise<void> {
  assert.deepEqual(await repo.indexes(), [])
  await runJob(pinfold.app, indexTags)
  assert.equal(await rowsOf(index), 0)
  assert.equal(await db.get(sql`SELECT id FROM tag_part_indexes WHERE repo_id IS NULL`), undefined)
}

test('deletes the index rows of a deleted repository', async () => {
  const { repo, index } = await indexedRepo()
  // As after a retention run that left few rows: the deletion then takes one batch.
  await repo.delete(numbered(100, perSegment + 5))
  ok(await operator.delete(`/registry/v2/repos/${repo.uid}`))
  await runJob(pinfold.app, removeRepos)
  await checkGone(repo, index)
})

test('deletes the index of a repository that an earlier server version deleted, without delaying other repositories', async () => {
  const { repo, index } = await indexedRepo()
  await repo.delete(numbered(1200, perSegment + 5))
  ok(await operator.delete(`/registry/v2/repos/${repo.uid}`))
  assert.ok(await db.get(sql`SELECT id FROM repo_removals WHERE id = ${repo.id}`))
  await db.tx((tx) => tx.run(sql`UPDATE tag_part_indexes SET repo_id = ${repo.id}, due = 1 WHERE id = ${index}`))
  assert.deepEqual(await runJob(pinfold.app, indexTags), { segments: 0, dropped: 0 })
  assert.deepEqual(await runJob(pinfold.app, removeRepos), { repos: 1 })
  await checkGone(repo, index)
})
