// Tags by a part of their name, page by page, with bounded work.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { insertsOf } from '#db/bulk.ts'
import { sql } from '#db/sql.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { digestOf } from '../support/tags.ts'

const { pinfold, operator } = await startScene()
after(() => pinfold[Symbol.asyncDispose]())

/** A repo with tags of these names. */
async function repoWith(names: readonly string[]): Promise<string> {
  const org = await pinfold.seed.group('')
  const repo = (await pinfold.seed.repo(org.uid)).uid as string
  const records = [{ time: '2026-05-01T10:00:00.000Z', digest: digestOf('an image') }]
  for (let i = 0; i < names.length; i += 1000) {
    const tags = names.slice(i, i + 1000).map((name) => ({ name, records }))
    ok(await operator.post('/control/v1/tagHistory:import', { repoUid: repo, tags }))
  }
  return repo
}

/** Writes tags straight into the table, because the API would take too long. */
async function plantNames(repo: string, names: readonly string[]): Promise<void> {
  const { db, clock } = pinfold.app
  const [digest, now] = [digestOf('an image'), clock().toISOString()]
  const { id } = (await db.get<{ id: number }>(sql`SELECT id FROM repos WHERE uid = ${repo}`))!
  const rows = names.map((name, i) => {
    const uid = `${repo}/${String(i).padStart(16, '0')}`
    return sql`(${uid}, ${id}, ${name}, ${digest}, 0, 0, '[]', ${now}, ${now}, ${now})`
  })
  const into = sql`INSERT INTO tags
    (uid, repo_id, name, digest, shape, deprecated, bundles, create_time, update_time, assign_time)`
  await db.tx(async (tx) => {
    for (const insert of insertsOf(into, rows)) await tx.run(insert)
  })
}

const search = (repo: string, query: Json, client = operator) =>
  client.get(`/registry/v2/repos/${repo}/tags?${new URLSearchParams(query as Record<string, string>)}`)

/** The names on all pages, and how many pages there were. */
async function allOf(repo: string, query: Json): Promise<{ names: string[]; pages: number }> {
  const names: string[] = []
  let [pageToken, pages] = ['', 0]
  do {
    const page = ok(await search(repo, { ...query, pageToken }))
    names.push(...page.tags.map(({ name }: Json) => name))
    pageToken = page.nextPageToken as string
    pages++
  } while (pageToken !== '')
  return { names, pages }
}

test('a search finds the same tags as a full scan, with each page size', async () => {
  const names = ['1.0', '1.1', '1.10', '10.1', 'A_b', 'a-b', 'ab', 'aB.c', 'Stable', 'unstable', 'x_y', 'xzy']
  const repo = await repoWith(names)
  for (const prefix of ['', '1', '1.1', 'a', 'A', 'zz']) {
    for (const part of ['', 'b', 'STABLE', '_', '.1', '1.1', 'x_y', '%']) {
      if (prefix === '' && part === '') continue
      const wanted = names
        .filter((one) => one.startsWith(prefix) && one.toLowerCase().includes(part.toLowerCase()))
        .sort()
      for (const pageSize of ['1', '3', '200']) {
        const found = await allOf(repo, { prefix, part, pageSize })
        assert.deepEqual(found.names, wanted, `${prefix} ${part} ${pageSize}`)
      }
    }
  }
})

test('finds signatures, dated tags and epochs only on request', async () => {
  const names = ['app-1', 'app-1-20260801', 'app-1-r3', `sha256-${'a'.repeat(64)}.sig`]
  const repo = await repoWith(names)
  assert.deepEqual((await allOf(repo, { part: 'a' })).names, ['app-1'])
  const everything = { part: 'a', includeReferrers: 'true', includeDates: 'true', includeEpochs: 'true' }
  assert.deepEqual((await allOf(repo, everything)).names, [...names].sort())
})

test('a page scans at most ten thousand names, and the next page continues after them', async () => {
  const names = Array.from({ length: 10_500 }, (_, i) => `build-${String(i).padStart(6, '0')}`)
  const repo = await repoWith(['the-last-one'])
  await plantNames(repo, names)
  const first = ok(await search(repo, { part: 'last' }))
  assert.deepEqual(first.tags, [])
  assert.notEqual(first.nextPageToken, '')
  assert.deepEqual(await allOf(repo, { part: 'last' }), { names: ['the-last-one'], pages: 2 })
  // A page starts at the first name with the prefix.
  assert.deepEqual(await allOf(repo, { prefix: 'the-' }), { names: ['the-last-one'], pages: 1 })
  assert.deepEqual((await allOf(repo, { part: '0499', prefix: 'build-0', pageSize: '200' })).names.length, 12)
})

test('denies callers without permission to list tags, and names the invalid field', async () => {
  const repo = await repoWith(['one'])
  const group = repo.slice(0, 40)
  const viewer = await pinfold.as((await pinfold.seed.member(group, roleUids.viewer)).uid)
  assert.equal(ok(await search(repo, { part: 'o' }, viewer)).tags.length, 1)
  const stranger = await pinfold.as((await pinfold.seed.identity(group)).uid)
  assertDenied(await search(repo, { part: 'o' }, stranger))
  const missing = `${group}/${'0'.repeat(16)}`
  assertNotFound(await search(missing, { part: 'o' }), 'registry.pinfold.dev/Repo', missing)
  assertInvalid(await search(repo, {}), 'part')
  assertInvalid(await search(repo, { part: 'x'.repeat(129) }), 'part')
  assertInvalid(await search(repo, { prefix: 'x'.repeat(129) }), 'prefix')
})
