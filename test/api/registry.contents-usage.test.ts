// What is kept of the packages of images counts for whoever brings them, also when the images are gone: a report of a past day
// needs it, and nobody can fill the database with what was pushed and deleted.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { usageOf } from '#domains/registry/blobs/usage.store.ts'
import { readImages } from '#domains/registry/images/read-images.duty.ts'
import { matchPackages } from '#domains/scanning/matching/match.duty.ts'
import { sweepScanning } from '#domains/scanning/upkeep/upkeep.duty.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { checkUsage } from '../support/check-usage.ts'
import { runDuty } from '../support/duties.ts'
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
  await runDuty(registry.app, readImages)
  await runDuty(registry.app, matchPackages)
}
const layerOf = (prefix: string, packages: number) =>
  apkLayer(
    'alpine',
    '3.19.1',
    Array.from({ length: packages }, (_, i) => `${prefix}-${i} 1-r${i}`),
  )
const push = async (name: string, prefix: string, packages = 100) =>
  pushLayers(await operator(), name, [layerOf(prefix, packages)], 'latest')

/** Deletes the image and all that it consists of, so that the registry holds nothing of it. */
async function remove(name: string, digest: string): Promise<void> {
  const client = await operator()
  const { body } = await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  await client.ok(202, 'DELETE', `${name}/manifests/${digest}`)
  for (const one of [body.config, ...body.layers]) await client.ok(202, 'DELETE', `${name}/blobs/${one.digest}`)
}

test('pushing and deleting again and again is refused once what is kept of it has no room', async () => {
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

test('what only a deleted repository had counts no more when it is forgotten', async () => {
  const client = await registry.as(operatorUid)
  const { repo } = await registry.app.paths.find('acme/gone')
  ok(await client.delete(`/registry/v2/repos/${repo!.uid}`))
  await runDuty(registry.app, sweepScanning)
  assert.ok((await bytesOf()) > 0)
  now = new Date('2026-03-02T09:00:00Z')
  await runDuty(registry.app, sweepScanning)
  assert.deepEqual([await bytesOf(), await total('component_lists')], [0, 0])
  await checkUsage(registry)
})

test('an image waits to be read while its organisation stores more than it may', async () => {
  await limit(50_000)
  await push('acme/app', 'first', 300)
  await push('acme/app', 'second', 10)
  await work()
  assert.ok((await bytesOf()) > 50_000)
  assert.deepEqual([await total('component_lists'), await total('image_reads')], [1, 1])
  await limit(500_000)
  await work()
  assert.equal(await total('image_reads'), 1, 'it is looked at again in ten minutes')
  now = new Date('2026-03-02T09:10:00Z')
  await work()
  assert.deepEqual([await total('component_lists'), await total('image_reads')], [2, 0])
  await checkUsage(registry)
})

test('what is found in packages counts too, and no more when it is taken back', async () => {
  await limit(0)
  await push('acme/app', 'third', 20)
  await work()
  const before = await bytesOf()
  const records = Array.from({ length: 20 }, (_, i) =>
    Array.from({ length: 20 }, (_, j) => recordAbout(`CVE-2026-${i * 20 + j}`, ecosystem, `third-${j}`, '9')),
  ).flat()
  await readSource(registry.app, ecosystem, records)
  assert.equal(await bytesOf(), before + 400 * 200)
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

test('who has no image with a list any more is not charged for what others have', async () => {
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
  await runDuty(registry.app, sweepScanning)
  await checkUsage(registry)
  assert.equal(await bytesOf(), before)
  assert.equal(await bytesOf(other), theirs + charged)
})
