// Storage quota for package lists. They count for the organization that pushed the image, also after its deletion, because
// reports of past days need them. So nobody can fill the database by pushing and deleting.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Sql, sql } from '#db/sql.ts'
import { usageOf } from '#domains/registry/blobs/usage.store.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { sweepScanning } from '#domains/scanning/cleanup/cleanup.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { checkUsage } from '../support/check-usage.ts'
import { ok } from '../support/expect.ts'
import { pushLayers } from '../support/images.ts'
import { codeOf, digestOf, startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, readSource, recordAbout } from '../support/scanning.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let other: string
before(async () => {
  registry = await startRegistry({ clock: () => now })
  other = (await registry.seed.group('', { name: 'other' })).uid
})
after(() => registry[Symbol.asyncDispose]())

const ecosystem = 'Alpine:v3.19'
const operator = () => registry.registryAs(operatorUid)
const bytesOf = async (organization = registry.org.uid) => (await usageOf(registry.app.db, organization)).bytes
const limit = async (bytes: number) => {
  const client = await registry.as(operatorUid)
  const limits = [{ name: 'bytes', limit: String(bytes) }]
  ok(await client.post('/control/v1/quotas:set', { organization: registry.org.uid, limits }))
}
const total = async (table: 'component_lists' | 'image_reads'): Promise<number> => {
  const all =
    table === 'image_reads'
      ? sql`SELECT count(*) AS total FROM image_reads`
      : sql`SELECT count(*) AS total FROM component_lists`
  return Number((await registry.app.db.get<{ total: number }>(all))!.total)
}
const work = async () => {
  await runJob(registry.app, readImages)
  await runJob(registry.app, matchPackages)
}
const layerOf = (prefix: string, packages: number) =>
  apkLayer(
    'alpine',
    '3.19.1',
    Array.from({ length: packages }, (_, i) => `${prefix}-${i} 1-r${i}`),
  )
const push = async (name: string, prefix: string, packages = 100) =>
  pushLayers(await operator(), name, [layerOf(prefix, packages)], 'latest')

/** Deletes the image with all of its content from the registry. */
async function remove(name: string, digest: string): Promise<void> {
  const client = await operator()
  const { body } = await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  await client.ok(202, 'DELETE', `${name}/manifests/${digest}`)
  for (const one of [body.config, ...body.layers]) await client.ok(202, 'DELETE', `${name}/blobs/${one.digest}`)
}

test('refuses more pushes and deletions once the package lists exceed the quota', async () => {
  assert.equal(await bytesOf(), 0)
  await limit(200_000)
  let refused = 0
  for (let i = 0; i < 50 && refused === 0; i++) {
    const client = await operator()
    const asked = await client.call('POST', `acme/gone/blobs/uploads/?digest=${digestOf('{}')}`, { body: '{}' })
    if (asked.status === 403) {
      assert.equal(codeOf(asked), 'DENIED')
      assert.equal(asked.body.errors[0].detail.quota, 'bytes')
      refused = i
      break
    }
    const { digest } = await push('acme/gone', `p${i}`)
    await work()
    await remove('acme/gone', digest)
    assert.ok((await bytesOf()) >= (i + 1) * 100 * 200, 'what it contained is kept, and counts')
    await checkUsage(registry)
  }
  assert.ok(refused > 1 && refused <= 11, `${refused}`)
  assert.equal(await total('component_lists'), refused)
})

test('package lists of a deleted repository count for the quota until they are deleted', async () => {
  const client = await registry.as(operatorUid)
  const { repo } = await registry.app.paths.find('acme/gone')
  ok(await client.delete(`/registry/v2/repos/${repo!.uid}`))
  await runJob(registry.app, sweepScanning)
  assert.ok((await bytesOf()) > 0)
  now = new Date('2026-03-02T09:00:00Z')
  await runJob(registry.app, sweepScanning)
  assert.deepEqual([await bytesOf(), await total('component_lists')], [0, 0])
  await checkUsage(registry)
})

test('does not read an image while its organization exceeds its quota', async () => {
  await limit(50_000)
  await push('acme/app', 'first', 300)
  await push('acme/app', 'second', 10)
  await push('acme/app', 'later', 10)
  await work()
  assert.ok((await bytesOf()) > 50_000)
  assert.deepEqual([await total('component_lists'), await total('image_reads')], [1, 2])
  const waiting = await registry.app.db.all<{ fence: number; attempts: number }>(sql`
    SELECT fence, attempts FROM image_reads`)
  assert.deepEqual(
    waiting.map(({ fence, attempts }) => [Number(fence), Number(attempts)]),
    [
      [0, 0],
      [0, 0],
    ],
    'nobody takes them and puts them back',
  )
  await limit(500_000)
  await work()
  assert.equal(await total('image_reads'), 2, 'they are looked at again in ten minutes')
  now = new Date('2026-03-02T09:10:00Z')
  await work()
  assert.deepEqual([await total('component_lists'), await total('image_reads')], [3, 0])
  await checkUsage(registry)
})

test('findings in packages count for the quota until they are withdrawn', async () => {
  await limit(0)
  await push('acme/app', 'third', 20)
  await work()
  const before = await bytesOf()
  const records = Array.from({ length: 20 }, (_, i) =>
    Array.from({ length: 20 }, (_, j) => recordAbout(`CVE-2026-${i * 20 + j}`, ecosystem, `third-${j}`, '9')),
  ).flat()
  await readSource(registry.app, ecosystem, records)
  const found = (await bytesOf()) - before
  assert.ok(found >= 64 * 1024 && found <= 400 * 200, `${found}: what is less than a step is not written down`)
  await checkUsage(registry)
  now = new Date('2026-03-03T08:00:00Z')
  const withdrawTime = now.toISOString()
  await readSource(
    registry.app,
    ecosystem,
    records.map((one) => ({ ...one, withdrawTime })),
  )
  assert.equal(await bytesOf(), before)
})

test('an organization without an image with a package list is not charged for the images of others', async () => {
  const before = await bytesOf()
  await push('acme/shared', 'shared')
  const pushed = await bytesOf()
  await work()
  const charged = (await bytesOf()) - pushed
  assert.ok(charged > 100 * 200)
  await push('other/shared', 'shared')
  const theirs = await bytesOf(other)
  await work()
  assert.equal(await bytesOf(other), theirs, 'one of them is charged')
  const { repo } = await registry.app.paths.find('acme/shared')
  ok(await (await registry.as(operatorUid)).delete(`/registry/v2/repos/${repo!.uid}`))
  now = new Date('2026-03-04T09:00:00Z')
  await runJob(registry.app, sweepScanning)
  await checkUsage(registry)
  assert.equal(await bytesOf(), before)
  assert.equal(await bytesOf(other), theirs + charged)
})

test('charges findings by the advisories of another organization to this organization, once per package', async () => {
  const pushMine = async (name: string, packages: number) => {
    const lines = Array.from({ length: packages }, (_, i) => `mine-${i} 1-r${i} mine`)
    await pushLayers(await operator(), name, [apkLayer('alpine', '3.19.1', lines)], 'latest')
  }
  await pushMine('acme/one', 50)
  await pushMine('acme/two', 60)
  await work()
  const [ours, theirs] = [await bytesOf(), await bytesOf(other)]
  const admin = await registry.as(operatorUid)
  const fixed = { createTime: now.toISOString(), author: 'tests', fixed: { fixedVersion: '9' } }
  const advisories = Array.from({ length: 8 }, (_, i) => ({
    origin: 'ours',
    advisory: {
      ...{ advisoryId: `OTH-${i}`, author: 'tests', artifactName: 'mine', artifactType: 'apk', aliases: [] },
      events: [{ ...fixed, reviewState: 'REVIEW_STATE_APPROVED' }],
    },
  }))
  ok(await admin.post('/control/v1/advisories:import', { parent: other, advisories }))
  // The job may end early to let other organizations run.
  const waits = sql`SELECT 1 AS found FROM match_queue LIMIT 1`
  while (await registry.app.db.get(waits)) await runJob(registry.app, matchPackages)
  assert.equal(await bytesOf(), ours, 'two images of ours have it, and we have said nothing')
  assert.equal(await bytesOf(other), theirs + 8 * 60 * 200)
  await checkUsage(registry)
  for (const name of ['acme/one', 'acme/two']) {
    const { repo } = await registry.app.paths.find(name)
    ok(await admin.delete(`/registry/v2/repos/${repo!.uid}`))
  }
  now = new Date(now.getTime() + 25 * 3_600_000)
  await runJob(registry.app, sweepScanning)
  assert.equal(await bytesOf(other), theirs, 'no package is left in which it is found')
  await checkUsage(registry)
})

test('keeps a limited number of deleted images even without a quota', async () => {
  await using free = await startRegistry({ clock: () => now, vulnerabilityDeletedImages: 5 })
  const rows = async (): Promise<number[]> => {
    const of = async (all: Sql) => Number((await free.app.db.get<{ total: number }>(all))!.total)
    return [
      await of(sql`SELECT count(*) AS total FROM image_contents`),
      await of(sql`SELECT count(*) AS total FROM past_contents`),
      await of(sql`SELECT count(*) AS total FROM package_lists`),
      await of(sql`SELECT count(*) AS total FROM component_lists`),
      await of(sql`SELECT count(*) AS total FROM list_components`),
      await of(sql`SELECT count(*) AS total FROM components`),
    ]
  }
  const began = now
  for (let i = 0; i < 12; i++) {
    now = new Date(began.getTime() + i * 60_000)
    const client = await free.registryAs(operatorUid)
    const { digest } = await pushLayers(client, 'acme/app', [layerOf(`gone-${i}`, 10)], 'latest')
    await runJob(free.app, readImages)
    await runJob(free.app, matchPackages)
    await client.ok(202, 'DELETE', `acme/app/manifests/${digest}`)
  }
  await pushLayers(await free.registryAs(operatorUid), 'acme/app', [layerOf('stays', 10)], 'latest')
  await runJob(free.app, readImages)
  assert.deepEqual(await rows(), [13, 0, 13, 13, 130, 130])
  now = new Date(began.getTime() + 25 * 3_600_000)
  await runJob(free.app, sweepScanning)
  assert.deepEqual(await rows(), [6, 0, 6, 6, 60, 60])
  const kept = await free.app.db.all<{ name: string }>(
    sql`SELECT name FROM components WHERE name LIKE '%-0' ORDER BY name`,
  )
  assert.deepEqual(
    kept.map(({ name }) => name),
    ['gone-10-0', 'gone-11-0', 'gone-7-0', 'gone-8-0', 'gone-9-0', 'stays-0'],
    'the newest are kept, and what is there',
  )
  await checkUsage(free)
})
