// Freed bytes that a plan announces, compared with the bytes that the blob folder frees: for one rule, and for PINFOLD_TEST_TIMES
// random sets of rules.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { type Random, randomFrom, seedOf } from '../support/random.ts'
import { type Descriptor, imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { times } from '../support/times.ts'

const [hour, day] = [3_600_000, 86_400_000]
const trashSeconds = 3600
const begin = Date.parse('2026-05-01T10:00:00.000Z')
let now = begin

type Freed = { deletions: number; said: number; freed: number }

/** Pushes images over some days, creates the rules, applies a plan, and returns its announced and its actual freed bytes. */
async function freedBy(random: Random, rules: readonly Json[], images: number): Promise<Freed> {
  now = begin
  await using registry = await startRegistry({
    clock: () => new Date(now),
    blobs: '',
    blobGraceSeconds: 3600,
    blobTrashSeconds: trashSeconds,
  })
  const { app, org } = registry
  const operator = () => registry.as(operatorUid)
  for (const rule of rules) ok(await (await operator()).post(`/registry/v2/retentionRules/${org.uid}`, rule))
  for (const name of ['acme/one', 'acme/two']) await pushSome(registry, random, name, images)
  now += 3 * day
  const folder = join(app.config.data, 'blobs')
  const used = (): number =>
    Number(execFileSync('du', ['-s', '--block-size=1', folder], { encoding: 'utf8' }).split('\t')[0])
  const collect = async (): Promise<Json> => ok(await (await operator()).post('/control/v1/blobs:collect', {}))

  const { uid } = ok(await (await operator()).post(`/registry/v2/retentionPlans/${org.uid}`, {}))
  await runJob(app, sweepRetention)
  const planOf = async () => ok(await (await operator()).get(`/registry/v2/retentionPlans/${uid}`))
  const { bytes } = await planOf()
  const { deletions } = ok(await (await operator()).get(`/registry/v2/retentionPlans/${uid}/deletions?pageSize=200`))
  const reader = await registry.registryAs(registry.pusher.uid)
  const repos = ok(await (await operator()).get(`/registry/v2/repos?uidp.descendants_of=${org.uid}`)).repos as Json[]
  // The database stores manifests as rows.
  let ofManifests = 0
  for (const { repoUid, digest } of deletions as Json[]) {
    const name = `acme/${repos.find((one) => one.uid === repoUid)!.name}`
    ofManifests += (await reader.ok(200, 'GET', `${name}/manifests/${digest}`)).bytes.length
  }
  ok(await (await operator()).post(`/registry/v2/retentionPlans/${uid}:apply`, {}))
  await runJob(app, sweepRetention)
  assert.equal((await planOf()).deleted, String(deletions.length))

  const before = used()
  now += day
  const collected = await collect()
  assert.equal(used(), before, 'all of it is in the trash')
  now += (trashSeconds + 60) * 1000
  await collect()
  const [said, freed] = [Number(bytes) - ofManifests, before - used()]
  assert.equal(Number(collected.bytes), said, 'of the contents themselves it is exact')
  assert.ok(Math.abs(freed - said) <= said / 100, `the plan says ${said}, the disk gave back ${freed}`)
  return { deletions: deletions.length, said, freed }
}

function contentOf(random: Random, outputLength: number): Buffer {
  return createHash('shake256', { outputLength })
    .update(`${random.below(2 ** 32)}`)
    .digest()
}

async function pushSome(registry: TestRegistry, random: Random, name: string, count: number): Promise<void> {
  const layers: Descriptor[] = []
  const images: Descriptor[] = []
  for (let i = 0; i < count; i++) {
    now += random.below(6) * hour
    const client = await registry.registryAs(registry.pusher.uid)
    const config = await client.pushBlob(name, '{"architecture":"amd64","os":"linux"}', types.config)
    // Images are large enough that the unused end of the last block of each file is below one per cent.
    const own = await client.pushBlob(name, contentOf(random, 410_000 + random.below(400_000)))
    layers.push(own)
    // Some images share a layer with a deleted image, and some with a kept image.
    const shared = layers[random.below(layers.length)]!
    const about = i % 5 === 4 ? { subject: images[random.below(images.length)] } : {}
    const tag = i % 5 === 4 ? undefined : i % 3 === 0 ? 'kept' : `v${random.below(4)}`
    const given = tag === 'kept' ? `kept${i}` : tag
    const image = imageOf(config, shared === own ? [own] : [own, shared], { ...about, annotations: { i: `${i}` } })
    images.push(await client.pushManifest(name, image, given))
    if (i % 6 === 5) await client.pushManifest(name, indexOf(images.slice(-2)), `v${random.below(4)}`)
  }
}

function someRules(random: Random): Json[] {
  return Array.from({ length: 1 + random.below(3) }, () => {
    const says = { keepDaysAfter: random.below(6), keepLast: random.below(4), untaggedDays: random.below(5) }
    const isNothing = Object.values(says).every((one) => one === 0)
    const tags = [[], ['v*'], ['kept*'], ['v1', 'v2'], ['kept*', 'v3']][random.below(5)]!
    return {
      ...says,
      ...(isNothing && { keepLast: 1 }),
      ...(random.below(15) === 0 && { forever: true }),
      tags,
      ...(random.below(4) === 0 && { exceptTags: ['v1'] }),
      mode: 'ENFORCE',
    }
  })
}

test('a plan predicts the freed disk space within one percent', async (t) => {
  const seed = seedOf(t)
  const rule = { tags: ['v*'], keepDaysAfter: 1, untaggedDays: 1, mode: 'ENFORCE' }
  const { deletions, said, freed } = await freedBy(randomFrom(seed), [rule], 20)
  assert.ok(deletions > 10, `${deletions}`)
  console.log(`the plan says ${said}, the disk gave back ${freed}`)
})

test('predictions are as exact for random sets of rules', async (t) => {
  const seed = seedOf(t)
  const sets = 2 * times
  const found = { sets, freeing: 0, deletions: 0, said: 0, freed: 0, furthest: 0 }
  for (let i = 0; i < sets; i++) {
    // The failing set is the first set of its seed.
    const random = randomFrom(seed + i)
    const rules = someRules(random)
    const { deletions, said, freed } = await freedBy(random, rules, 12).catch((error: unknown) => {
      throw new Error(`PINFOLD_SEED=${seed + i}: ${JSON.stringify(rules)}`, { cause: error })
    })
    if (said > 0) {
      found.freeing++
      found.furthest = Math.max(found.furthest, Math.abs(freed - said) / said)
    }
    found.deletions += deletions
    found.said += said
    found.freed += freed
  }
  console.log(JSON.stringify(found))
  assert.ok(sets < 20 || found.freeing > sets / 4, 'most of the rules let nothing go')
})
