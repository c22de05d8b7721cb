// Limits on the rows read before a deletion, and on cached rules of organizations.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Reader, type Sql, sql } from '#db/sql.ts'
import { createContentRulesCache } from '#domains/policy/retention/content-rules-cache.ts'
import { holdIn, protectionIn, protectionOf, RetentionSearch } from '#domains/policy/retention/protection.service.ts'
import { raiseRulesVersion } from '#domains/policy/retention/retention.store.ts'
import { findRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { assertError, ok } from '../support/expect.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { plantManifest, plantMoves } from '../support/tags.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const later = '2030-01-01T00:00:00.000Z'

async function seedRepo(): Promise<{ org: string; repo: RepoRow }> {
  const org = await pinfold.seed.group()
  const { uid } = await pinfold.seed.repo(org.uid)
  return { org: org.uid, repo: (await findRepoRow(pinfold.app.db, { uid }))! }
}

const rule = async (scope: string, says: Json): Promise<Json> =>
  ok(await pinfold.operator.post(`/registry/v2/retentionRules/${scope}`, { mode: 'ENFORCE', ...says }))

/** A reader that counts its statements and the rows that they answer with. */
function counting(): { reader: Reader; seen: { statements: number; rows: number } } {
  const seen = { statements: 0, rows: 0 }
  const { db } = pinfold.app
  const reader: Reader = {
    async all<T>(query: Sql) {
      const rows = await db.all<T>(query)
      seen.statements++
      seen.rows += rows.length
      return rows
    },
    async get<T>(query: Sql) {
      seen.statements++
      return db.get<T>(query)
    },
  }
  return { reader, seen }
}

test('evaluates each manifest once, however many tags have pointed to it', async () => {
  const { org, repo } = await seedRepo()
  await rule(org, { keepDaysAfter: 1 })
  const digests: string[] = []
  for (let i = 0; i < 20; i++) digests.push(await plantManifest(pinfold, repo.uid, `image ${i}`))
  const tags = Array.from({ length: 20 }, (_, i) => `t${i}`)
  await plantMoves(pinfold, repo, [
    ...tags.flatMap((tag) => digests.map((digest) => ({ tag, digest }))),
    ...tags.map((tag) => ({ tag, digest: `sha256:${'0'.repeat(64)}` })),
  ])
  const { reader, seen } = counting()
  const look = await RetentionSearch.at(reader, pinfold, repo, later)
  assert.equal(await protectionIn(look), undefined)
  // There are 400 pairs of a tag and a manifest.
  assert.ok(seen.statements < 150, `${seen.statements} statements`)
})

test('reads a limited number of rows per check, keeps undecided manifests, and reports them', async () => {
  const { org, repo } = await seedRepo()
  await rule(org, { tags: ['v*'], keepDaysAfter: 1 })
  const digest = await plantManifest(pinfold, repo.uid, 'once tagged')
  const moves = Array.from({ length: 12_000 }, (_, i) => ({ tag: `n${i % 3}`, digest: `sha256:${'0'.repeat(64)}` }))
  await plantMoves(pinfold, repo, [{ tag: 'v1', digest }, { tag: 'v1', digest: `sha256:${'1'.repeat(64)}` }, ...moves])
  const { reader, seen } = counting()
  const look = await RetentionSearch.at(reader, pinfold, repo, later)
  assert.equal((await protectionIn(look))?.by, 'UNDECIDED')
  assert.ok(seen.rows < 21_000, `${seen.rows} rows`)
  const contentRules = await RetentionSearch.at(reader, pinfold, repo, later)
  const short = new RetentionSearch(reader, contentRules.contentRules, repo, later, { most: 1 })
  assert.equal((await protectionOf(short, digest))?.by, 'UNDECIDED')
  assert.equal(await holdIn(look), undefined, 'nobody holds anything')
  const refused = await pinfold.operator.delete(`/registry/v2/repos/${repo.uid}`)
  assert.deepEqual([refused.status, refused.body.details[0].reason], [400, 'CONTENT_KEPT'])
  assert.match(refused.body.message, /too many tags and parents to check/)
})

test('searches a limited number of untagged manifests, in several reads', async () => {
  const { org, repo } = await seedRepo()
  const { uid } = await rule(org, { untaggedDays: 1 })
  // The check evaluates all rules for each manifest at once.
  const longer = await rule(org, { untaggedDays: 2 })
  const digests: string[] = []
  for (let i = 0; i < 700; i++) digests.push(await plantManifest(pinfold, repo.uid, `image ${i}`))
  const { db } = pinfold.app
  const { contentRules } = await RetentionSearch.at(db, pinfold, repo, later)
  const kept = async (most?: number) => {
    const { reader, seen } = counting()
    const found = await protectionIn(
      new RetentionSearch(reader, contentRules, repo, later, most === undefined ? {} : { most }),
    )
    return [found?.by, found?.rule, seen.rows]
  }
  assert.deepEqual(await kept(), [undefined, undefined, 700])
  const [by, of, rows] = await kept(400)
  assert.deepEqual([by, [uid, longer.uid].includes(of), rows], ['UNDECIDED', true, 500])
  const [last] = digests.sort().slice(-1)
  await db.tx((tx) =>
    tx.run(sql`
    UPDATE manifests SET create_time = '2029-12-31T12:00:00.000Z' WHERE repo_id = ${repo.id} AND digest = ${last!}`),
  )
  assert.deepEqual(await kept(), ['PROMISED', longer.uid, 700])
})

test('finds the last digests of a tag after ten thousand updates of other tags', async () => {
  const { org, repo } = await seedRepo()
  await rule(org, { tags: ['release-*'], keepLast: 2 })
  const releases = []
  for (let i = 0; i < 3; i++) releases.push(await plantManifest(pinfold, repo.uid, `release ${i}`))
  const nightly = Array.from({ length: 10_500 }, () => ({ tag: 'nightly', digest: `sha256:${'0'.repeat(64)}` }))
  await plantMoves(pinfold, repo, [...releases.map((digest, i) => ({ tag: `release-${i}`, digest })), ...nightly])
  const kept = []
  for (const digest of releases) {
    const look = await RetentionSearch.at(pinfold.app.db, pinfold, repo, later)
    kept.push((await protectionOf(look, digest))?.by)
  }
  assert.deepEqual(kept, [undefined, 'LAST', 'LAST'])
})

test('limits the tag patterns in all rules and holds of an organization, and names the limit in the error', async () => {
  const { org } = await seedRepo()
  const patterns = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i}`)
  const tagRule = (exceptTags: string[]) =>
    pinfold.operator.post(`/registry/v2/tagRules/${org}`, { immutable: true, exceptTags })
  for (const name of ['a', 'b', 'c', 'd']) ok(await tagRule(patterns(name, 1000)))
  const { uid } = ok(await tagRule(patterns('e', 990)))
  await rule(org, { tags: patterns('f', 10), keepDaysAfter: 1 })
  const limit = { quota: 'patterns of tags in rules and holds', limit: '5000', used: '5001' }
  const refused = await rule(org, { tags: ['g'], keepDaysAfter: 1 }).catch((error: unknown) => error)
  assert.ok(refused instanceof Error)
  const answers = [
    await pinfold.operator.post(`/registry/v2/holds/${org}`, { tags: ['g'], reason: 'asked for' }),
    await pinfold.operator.patch(`/registry/v2/tagRules/${uid}`, { exceptTags: patterns('e', 991) }),
  ]
  for (const answer of answers) {
    assertError(answer, 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
    const { quota, used, limit: most } = answer.body.details[0].metadata
    assert.deepEqual({ quota, used, limit: most }, limit)
  }
  ok(await pinfold.operator.patch(`/registry/v2/tagRules/${uid}`, { exceptTags: patterns('e', 989) }))
  ok(await pinfold.operator.post(`/registry/v2/holds/${org}`, { tags: ['g'], reason: 'asked for' }))
})

test('a change clears cached rules only of its organization, and reads in a transaction are not cached', async () => {
  const [one, other] = [await seedRepo(), await seedRepo()]
  for (const { org } of [one, other]) await rule(org, { keepDaysAfter: 1 })
  let now = 0
  const { reader, seen } = counting()
  const cache = createContentRulesCache(reader, () => now)
  const asked = async (scope: string, by: Reader = reader): Promise<number> => {
    seen.statements = 0
    assert.equal((await cache.of(by, scope)).rules.length, 1)
    return seen.statements
  }
  assert.deepEqual([await asked(one.org), await asked(other.org)], [6, 6])
  assert.deepEqual([await asked(one.org), await asked(other.org)], [0, 0], 'they are known')
  cache.clear()
  await pinfold.app.db.tx((tx) => raiseRulesVersion(tx, one.org))
  assert.deepEqual([await asked(one.org), await asked(other.org)], [6, 1])
  now = 500
  assert.deepEqual([await asked(one.org), await asked(other.org)], [1, 1], 'on another node something may have changed')
  seen.statements = 0
  assert.equal((await cache.of(reader, one.org, { fresh: true })).rules.length, 1)
  assert.equal(seen.statements, 1, 'whoever is about to delete something asks whether it is still so')
  const fresh = createContentRulesCache(reader, () => now)
  const counted = counting()
  for (const _ of [1, 2]) {
    counted.seen.statements = 0
    await fresh.of(counted.reader, one.org)
    assert.equal(counted.seen.statements, 6, 'a reader of its own')
  }
})
