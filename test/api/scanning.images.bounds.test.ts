// Images by contents: limits on the rows read for a response, and coverage gaps.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { componentsWith } from '#domains/scanning/images/images.store.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { pushLayers } from '../support/images.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let app = ''
let viewer: Client
before(async () => {
  registry = await startRegistry()
  app = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  viewer = await registry.as((await registry.seed.member(registry.org.uid, roleUids.viewer)).uid)
  // Package lists of other organizations without comparison, queued before our own.
  await registry.app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO component_lists (hash, distribution, distribution_version, ecosystem, state, packages, create_time)
      SELECT 'other' || i, 'alpine', '3.19', '', 1, 0, ''
        FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT i FROM n) AS many`),
  )
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('ALPINE-CVE-2026-1', 'Alpine:v3.19', 'openssl', '3.1.4-r5', { upstream: ['CVE-2026-1'] }),
    recordAbout('OTHER-1', 'Alpine:v3.19', 'openssl', '3.1.4-r5', { upstream: ['CVE-2026-1'] }),
  ])
})
after(() => registry[Symbol.asyncDispose]())

const push = (lines: string[], tag?: string, version = '3.19.1', more = {}) =>
  pushAndScan(registry, 'acme/app', { ...apkLayer('alpine', version, lines), ...more }, tag)
const listed = async (path: string, client = viewer): Promise<Json> => ok(await client.get(`/registry/v2/${path}`))
const broken = { 'usr/lib/python3.12/site-packages/x-1.dist-info/METADATA': 'Metadata-Version: 2.1\n' }

test('reads little more of an image than it shows, and says if there is more', async () => {
  const many = Array.from({ length: 700 }, (_, i) => `lib${i} 3.1.4-r2 openssl`)
  await push(many, 'wide')
  await push(many.slice(0, 5), 'small')
  const { db } = registry.app
  const { all } = db
  let most = 0
  db.all = async <T>(...given: Parameters<typeof all>): Promise<T[]> => {
    const rows = await all.apply(db, given)
    most = Math.max(most, rows.length)
    return rows as T[]
  }
  const vulnerable = await listed('vulnerableImages?vulnerability=CVE-2026-1')
  const having = await listed('imagesWithPackage?name=openssl')
  db.all = all
  const everywhere = await listed('vulnerableImages?vulnerability=CVE-2026-1', registry.operator)
  assert.ok(most <= 500, `${most} rows`)
  const short = ({ images }: Json, member: string, more: string) =>
    images.map((one: Json) => [one.tags[0], one[member].length, one[more]]).sort()
  const wanted = [
    ['small', 5, false],
    ['wide', 20, true],
  ]
  assert.deepEqual(short(vulnerable, 'purls', 'morePurls'), wanted)
  assert.deepEqual(short(everywhere, 'purls', 'morePurls'), wanted)
  assert.deepEqual(short(having, 'packages', 'morePackages'), wanted)
})

test('counts each package with a vulnerability once, and no packages of other organizations', async () => {
  const all = await componentsWith(registry.app.db, 'CVE-2026-1', undefined, 1000)
  assert.equal(all.length, 700)
  assert.equal((await componentsWith(registry.app.db, 'CVE-2026-1', [], 600)).length, 600)
  const organization = 'b'.repeat(40)
  await registry.app.db.tx((tx) =>
    tx.run(sql`UPDATE findings SET place = ${organization} WHERE component_id = ${all[0]!}`),
  )
  assert.deepEqual((await componentsWith(registry.app.db, 'CVE-2026-1', [registry.org.uid], 1000)).length, 699)
  assert.deepEqual((await componentsWith(registry.app.db, 'CVE-2026-1', [organization], 1000)).length, 700)
  await registry.app.db.tx((tx) => tx.run(sql`UPDATE findings SET place = '' WHERE component_id = ${all[0]!}`))
})

test('images that wait for comparison count as unknown, also behind many images of others', async () => {
  const unknown = async (client = viewer) =>
    (await listed('vulnerableImages?vulnerability=CVE-2026-1', client)).unknownImages
  assert.deepEqual([await unknown(), await unknown(registry.operator)], [0, 0])
  const pusher = await registry.registryAs(registry.pusher.uid)
  await pushLayers(pusher, 'acme/app', [apkLayer('alpine', '3.19.1', ['waits 1-r0'])], 'waits')
  await runJob(registry.app, readImages)
  assert.deepEqual([await unknown(), await unknown(registry.operator)], [1, 1])
})

test('images with an unreadable part count as unknown', async () => {
  await push(['musl 1-r0'], 'whole')
  const before = await listed('imagesWithPackage?name=flask')
  await push(['musl 1-r0'], 'part', '3.19.1', broken)
  const { unknownImages, moreUnknownImages } = await listed('imagesWithPackage?name=flask')
  assert.deepEqual([unknownImages, moreUnknownImages], [before.unknownImages + 1, false])
})

test('base image findings count as unknown, not resolved, if the image was scanned incompletely', async () => {
  const base = await push(['libssl3 3.1.4-r2 openssl', 'zlib 1-r0'], 'base')
  const compare = async (digest: string) => {
    const path = `repos/${app}/digests/${digest}/comparison?baseDigest=${base}`
    const { resolved, unknown } = await listed(path)
    return [resolved, unknown].map((those) => those.map(({ vulnerability }: Json) => vulnerability).join())
  }
  const fixed = ['libssl3 3.1.4-r5 openssl', 'zlib 1-r0']
  assert.deepEqual(await compare(await push(fixed, 'fixed')), ['CVE-2026-1', ''])
  // An unread part, a release without a data source, and a version that cannot be compared.
  assert.deepEqual(await compare(await push(fixed, 'broken', '3.19.1', broken)), ['', 'CVE-2026-1'])
  assert.deepEqual(await compare(await push(fixed, 'older', '3.18.1')), ['', 'CVE-2026-1'])
  assert.deepEqual(await compare(await push(['libssl3 odd openssl'], 'odd')), ['', 'CVE-2026-1'])
})
