// Damage that a verification finds, one at a time, and its repair.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import type { Blobs } from '#blobs/blobs.ts'
import { sql } from '#db/sql.ts'
import { verifyContents } from '#domains/registry/verification/contents.service.ts'
import { holdContents } from '../../src/maintenance/hold-contents.ts'
import { checks, type Finding, type Verified, type VerifyOptions, verify } from '../../src/maintenance/verify.ts'
import { noBucket, startBucket, type TestBucket } from '../support/bucket.ts'
import { checkLists } from '../support/check-lists.ts'
import { checkUsage } from '../support/check-usage.ts'
import { run } from '../support/process.ts'
import { codeOf, digestOf, indexOf, startRegistry, type TestRegistry } from '../support/registry.ts'

const name = 'acme/app'
let bucket: TestBucket

before(async () => {
  if (!noBucket) bucket = await startBucket()
})
after(() => bucket?.[Symbol.asyncDispose]())

type Store = 'folder' | 'bucket'
const stores = [
  ['folder', false],
  ['bucket', noBucket],
] as const

async function scene(store: Store = 'folder') {
  const settings = store === 'folder' ? { blobs: '' } : { blobs: bucket.url(), aws: bucket.aws }
  const registry = await startRegistry(settings)
  const { app, pusher } = registry
  const image = await pusher.pushImage(name, 'v1')
  await pusher.pushManifest(name, indexOf([image]), 'all')
  await pusher.pushImage(`${name}-other`, 'v1')
  const content = randomBytes(1000)
  await pusher.pushBlob(name, content)
  const locationOf = async (digest: string): Promise<string> => {
    const row = await app.db.get<{ location: string }>(sql`SELECT location FROM blobs WHERE digest = ${digest}`)
    return row!.location
  }
  const fileAt = (location: string) =>
    store === 'folder' ? join(app.config.data, 'blobs', location) : bucket.fileOf(app.config.blobs, location)
  return {
    registry,
    image,
    content,
    digest: digestOf(content),
    locationOf,
    fileAt,
    fileOf: async (digest: string) => fileAt(await locationOf(digest)),
    change: (query: Parameters<typeof app.db.all>[0]) => app.db.tx((tx) => tx.run(query)),
    [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose](),
  }
}

async function look({ app }: Pick<TestRegistry, 'app'>, options: Partial<VerifyOptions> = {}) {
  const findings: Finding[] = []
  const found = (finding: Finding) => findings.push(finding)
  const verified = await verify(app.config, { repair: false, hash: false, ...options, found })
  return { verified, findings, problems: findings.map(({ check, problem, repaired }) => [check, problem, repaired]) }
}

const counts = (verified: Verified) => Object.values(verified).map(({ found }) => found)
const allRight = checks.map(() => 0)

for (const [store, skip] of stores) {
  test(`detects lost, short or changed contents of a ${store}, which a new push repairs`, {
    skip,
  }, async () => {
    await using fixture = await scene(store)
    const { registry, content, digest } = fixture
    assert.deepEqual(counts((await look(registry, { hash: true })).verified), allRight)
    const file = await fixture.fileOf(digest)
    const kept = readFileSync(file)
    for (const damage of [() => rmSync(file), () => writeFileSync(file, kept.subarray(0, 900))]) {
      damage()
      const { findings } = await look(registry, { repair: true })
      assert.deepEqual(
        findings.map(({ check, problem: told, subject, repaired }) => [check, told, subject, repaired]),
        [['blobs', 'content missing or short', digest, false]],
      )
      writeFileSync(file, kept)
    }
    const flipped = Buffer.from(kept)
    flipped[500] = flipped[500]! ^ 1
    writeFileSync(file, flipped)
    assert.deepEqual((await look(registry)).problems, [])
    const wrong = ['blobs', 'content has another digest']
    assert.deepEqual((await look(registry, { hash: true })).problems, [[...wrong, false]])
    assert.deepEqual((await look(registry, { hash: true, repair: true })).problems, [[...wrong, true]])
    // The content is no longer served, and stays in the trash for inspection.
    const got = await registry.puller.call('GET', `${name}/blobs/${digest}`)
    assert.deepEqual([got.status, codeOf(got)], [404, 'BLOB_UNKNOWN'])
    assert.deepEqual((await look(registry)).problems, [['blobs', 'content missing or short', false]])
    await registry.pusher.pushBlob(name, content)
    assert.deepEqual((await registry.puller.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes, content)
    assert.deepEqual(counts((await look(registry, { hash: true })).verified), allRight)
  })

  test(`an upload ends if a ${store} has lost one of its parts`, { skip }, async () => {
    await using fixture = await scene(store)
    const { registry } = fixture
    const { headers } = await registry.pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
    const location = String(headers.location)
    for (const body of ['first', 'second']) await registry.pusher.ok(202, 'PATCH', location, { body })
    const part = await registry.app.db.get<{ location: string }>(sql`SELECT location FROM upload_parts LIMIT 1`)
    rmSync(fixture.fileAt(part!.location))
    const { problems } = await look(registry, { repair: true })
    assert.deepEqual(problems[0], ['uploads', 'content missing or short', true])
    await registry.pusher.ok(404, 'GET', location)
    assert.deepEqual(counts((await look(registry)).verified), allRight)
    await checkUsage(registry)
  })
}

test('names content without a row, and moves it to the trash once it is old enough', async () => {
  await using fixture = await scene()
  const { registry } = fixture
  const location = `uploads/${'a'.repeat(32)}`
  writeFileSync(fixture.fileAt(location), 'stray')
  assert.deepEqual((await look(registry)).problems, [])
  const old = new Date(Date.now() - 2 * 3600_000)
  utimesSync(fixture.fileAt(location), old, old)
  const { findings } = await look(registry)
  assert.deepEqual(
    findings.map(({ check, subject, repaired }) => [check, subject, repaired]),
    [['orphans', location, false]],
  )
  await look(registry, { repair: true })
  assert.deepEqual((await look(registry)).problems, [])
})

test('corrects wrong counters during concurrent counting', async () => {
  await using fixture = await scene()
  const { registry, change } = fixture
  const before = await registry.app.db.get<{ digest: string }>(sql`SELECT digest FROM organization_blobs LIMIT 1`)
  for (const damage of [
    sql`UPDATE list_counts SET total = total + 3 WHERE kind = 'tags.0' AND place = '/'`,
    sql`DELETE FROM list_counts WHERE kind = 'repos'`,
    sql`UPDATE organization_usage SET bytes = bytes + 1000, upload_bytes = 7`,
    sql`UPDATE organization_blobs SET links = links + 1 WHERE digest = ${before!.digest}`,
    sql`DELETE FROM organization_blobs WHERE digest = ${fixture.digest}`,
  ]) {
    await change(damage)
    const found = await look(registry)
    assert.ok(found.findings.length > 0, damage.parts.join('?'))
    assert.ok(found.findings.every(({ check }) => check === 'totals' || check === 'usage'))
    const pushing = registry.pusher.pushImage(name, 'meanwhile')
    await look(registry, { repair: true })
    await pushing
    assert.deepEqual((await look(registry)).problems, [], damage.parts.join('?'))
  }
  await checkLists(registry)
  await checkUsage(registry)
})

test('finds tags that differ from their history, and adds a history row for the served digest', async () => {
  await using fixture = await scene()
  const { registry, change, image } = fixture
  const { repo } = (await registry.app.db.get<{ repo: number }>(
    sql`SELECT repo_id AS repo FROM tags WHERE name = 'all'`,
  ))!
  const other = await registry.pusher.pushImage(name, 'v2')
  const history = async (tag: string) =>
    (
      await registry.app.db.all<{ digest: string; event: number }>(sql`
      SELECT digest, event FROM tag_history WHERE repo_id = ${repo} AND tag = ${tag} ORDER BY time`)
    ).map(({ event, digest }) => `${event} ${digest}`)
  const check = async (problem: string) => {
    assert.deepEqual(
      (await look(registry)).problems.map(([, told]) => told),
      [problem],
    )
    assert.deepEqual(
      (await look(registry, { repair: true })).problems.map(([, , repaired]) => repaired),
      [true],
    )
    assert.deepEqual((await look(registry)).problems, [])
  }
  await change(sql`DELETE FROM tag_history WHERE repo_id = ${repo} AND tag = 'v1'`)
  await check('ledger does not know the tag')
  assert.deepEqual(await history('v1'), [`1 ${image.digest}`])

  await change(sql`UPDATE tags SET digest = ${other.digest} WHERE repo_id = ${repo} AND name = 'v1'`)
  await change(sql`UPDATE list_keys SET value = ${other.digest} WHERE list = 'tags.0.digest'
    AND uid IN (SELECT uid FROM tags WHERE repo_id = ${repo} AND name = 'v1')`)
  await check('ledger says something else')
  assert.deepEqual(await history('v1'), [`1 ${image.digest}`, `2 ${other.digest}`])

  // The tag is missing without a deletion in its history.
  await change(sql`DELETE FROM list_keys WHERE uid IN (SELECT uid FROM tags WHERE repo_id = ${repo} AND name = 'v2')`)
  await change(sql`DELETE FROM tags WHERE repo_id = ${repo} AND name = 'v2'`)
  const gone = await look(registry, { only: ['ledger'] })
  assert.deepEqual(gone.problems, [['ledger', 'tag is missing', false]])
  await look(registry, { repair: true })
  assert.deepEqual((await look(registry)).problems, [])
  assert.equal(
    (await registry.puller.ok(200, 'GET', `${name}/manifests/v2`)).headers['docker-content-digest'],
    other.digest,
  )
  await checkLists(registry)

  await registry.pusher.pushManifest(
    name,
    (await registry.puller.ok(200, 'GET', `${name}/manifests/v1`)).bytes.toString(),
    'v2',
  )
  await registry.pusher.pushImage(name, 'v2')
  await change(
    sql`UPDATE tag_history SET previous_digest = ${image.digest} WHERE repo_id = ${repo} AND tag = 'v2' AND event = 2`,
  )
  const broken = await look(registry, { repair: true })
  assert.ok(broken.problems.length > 0)
  assert.ok(
    broken.problems.every(([, problem, repaired]) => problem === 'records do not follow each other' && !repaired),
  )
})

test('recreates the links of manifests from their contents', async () => {
  await using fixture = await scene()
  const { registry, change, image } = fixture
  for (const damage of [
    sql`DELETE FROM manifest_links WHERE manifest = ${image.digest}`,
    sql`UPDATE manifest_links SET kind = 1 WHERE manifest = ${image.digest}`,
    sql`INSERT INTO manifest_links (repo_id, digest, manifest, kind)
        SELECT repo_id, digest, ${`sha256:${'0'.repeat(64)}`}, 0 FROM repo_blobs WHERE digest = ${fixture.digest}`,
  ]) {
    await change(damage)
    const { problems } = await look(registry, { repair: true })
    assert.deepEqual(
      problems.map(([check, , repaired]) => [check, repaired]),
      [['manifests', true]],
      damage.parts.join('?'),
    )
    assert.deepEqual((await look(registry)).problems, [])
  }
  await change(sql`UPDATE manifests SET content = ${Buffer.from('{}')} WHERE digest = ${image.digest}`)
  assert.deepEqual((await look(registry, { repair: true })).problems, [
    ['manifests', 'manifest has another digest', false],
  ])
})

test('the command runs next to the server, reports problems as text and JSON, and exits with 1', async () => {
  await using fixture = await scene()
  const { registry, digest } = fixture
  const { data, database, masterKey } = registry.app.config
  const args = ['--data', data, ...(database ? ['--database', database] : [])]
  const env: Record<string, string> = masterKey === '' ? {} : { PINFOLD_MASTER_KEY: masterKey }
  const call = (...more: string[]) => run(['server', 'verify', ...args, ...more], { env })
  const right = await call()
  assert.deepEqual([right.code, right.stderr], [0, ''])
  assert.match(right.stdout, /^blobs: \d+ examined, all right \(blobs of the database have stored content\)$/m)
  truncateSync(await fixture.fileOf(digest), 10)
  const wrong = await call('--only', 'blobs')
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, new RegExp(`^blobs: content missing or short: ${digest} `, 'm'))
  assert.ok(!wrong.stdout.includes('ledger'))
  const told = await call('-o', 'json', '--repair')
  assert.equal(told.code, 1)
  const { checks, findings } = JSON.parse(told.stdout) as { checks: Verified; findings: Finding[] }
  assert.deepEqual([checks.blobs.found, checks.tags.found, findings[0]!.subject], [1, 0, digest])
  assert.equal((await call('--only', 'everything')).code, 64)
  for (const share of ['1', '0%', '101%', '-1%']) assert.equal((await call(`--content=${share}`)).code, 64, share)
  const other = await registry.pusher.pushBlob(name, 'changed later')
  writeFileSync(await fixture.fileOf(other.digest), 'chanted later')
  const shared = await call('--content', '100%', '--only', 'blobs')
  assert.match(shared.stderr, new RegExp(`^blobs: content has another digest: ${other.digest} `, 'm'))
})

test('content that is read wrongly once stays available', async () => {
  await using fixture = await scene()
  const { db, blobs } = fixture.registry.app
  let reads = 0
  const flaky: Blobs = {
    ...blobs,
    async read(blob, reading) {
      const right = await blobs.read(blob, reading)
      if (reads++ > 0) return right
      right.stream().destroy()
      return { ...right, stream: () => Readable.from([Buffer.alloc(blob.size)]) }
    },
  }
  const found: Finding[] = []
  const watch = { repair: true, found: (one: Finding) => found.push(one), examined() {} }
  await verifyContents({ db, blobs: flaky, hash: 1, due: '' }, watch)
  assert.ok(reads > 1)
  assert.deepEqual(found, [])
})

test('verifies a random share of the contents', async () => {
  await using fixture = await scene()
  const { db, blobs } = fixture.registry.app
  for (let i = 0; i < 200; i++) await fixture.registry.pusher.pushBlob(name, `content ${i}`)
  let reads = 0
  const counting: Blobs = {
    ...blobs,
    read(blob, reading) {
      reads++
      return blobs.read(blob, reading)
    },
  }
  const watch = { repair: false, found() {}, examined() {} }
  await verifyContents({ db, blobs: counting, hash: 0, due: '' }, watch)
  assert.equal(reads, 0)
  await verifyContents({ db, blobs: counting, hash: 0.5, due: '' }, watch)
  assert.ok(reads > 30 && reads < 170, `${reads} of 200`)
})

test('restores a missing tag from its history even if the content of its digest is missing', async () => {
  await using fixture = await scene()
  const { registry, change } = fixture
  await registry.pusher.pushImage(name, 'imported')
  const elsewhere = `sha256:${'e'.repeat(64)}`
  await change(sql`UPDATE tag_history SET source = 3, digest = ${elsewhere} WHERE tag = 'imported'`)
  await change(sql`DELETE FROM list_keys WHERE uid IN (SELECT uid FROM tags WHERE name = 'imported')`)
  await change(sql`DELETE FROM tags WHERE name = 'imported'`)
  assert.deepEqual((await look(registry, { repair: true })).problems[0], ['ledger', 'tag is missing', true])
  const tag = await registry.app.db.get<{ digest: string }>(sql`SELECT digest FROM tags WHERE name = 'imported'`)
  assert.equal(tag!.digest, elsewhere)
  const records = await registry.app.db.all(sql`SELECT 1 AS one FROM tag_history WHERE tag = 'imported'`)
  assert.equal(records.length, 1)
  assert.deepEqual((await look(registry)).problems, [])
})

test('only one repair runs at a time, and corrects all of many wrong totals', async () => {
  await using fixture = await scene()
  const { registry } = fixture
  await registry.app.db.tx(async (tx) => {
    for (let i = 0; i < 1100; i++) {
      await tx.run(sql`INSERT INTO list_counts (kind, place, shard, total) VALUES ('repos', ${`x${i}`}, 0, 1)`)
    }
  })
  const other = await holdContents(registry.app.db, registry.app.skew, 'repair')
  await assert.rejects(look(registry, { repair: true }), /another repair is running/)
  assert.equal((await look(registry)).verified.totals.found, 1100)
  await other.end()
  assert.equal((await look(registry, { repair: true })).verified.totals.repaired, 1100)
  assert.deepEqual((await look(registry)).problems, [])
})
