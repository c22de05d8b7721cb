// What a plan says that it frees, beside what the folder of the blobs gives back once all of it is gone.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { sweepRetention } from '#domains/registry/retention/plans.duty.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runDuty } from '../support/duties.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'
import { type Descriptor, imageOf, indexOf, startRegistry, types } from '../support/registry.ts'

const day = 86_400_000
const trashSeconds = 3600
let now = Date.parse('2026-05-01T10:00:00.000Z')

test('what a plan frees is what the disk gives back, to within one per cent', async () => {
  const seed = randomInt(1_000_000)
  console.log(`seed ${seed}`)
  const random = randomFrom(seed)
  await using registry = await startRegistry({
    clock: () => new Date(now),
    blobs: '',
    blobGraceSeconds: 3600,
    blobTrashSeconds: trashSeconds,
  })
  const { app, org } = registry
  const operator = () => registry.as(operatorUid)
  const rule = { tags: ['v*'], keepDaysAfter: 1, untaggedDays: 1, mode: 'ENFORCE' }
  ok(await (await operator()).post(`/registry/v2/retentionRules/${org.uid}`, rule))

  const client = await registry.registryAs(registry.pusher.uid)
  for (const name of ['acme/one', 'acme/two']) {
    const layers: Descriptor[] = []
    const images: Descriptor[] = []
    const config = await client.pushBlob(name, '{"architecture":"amd64","os":"linux"}', types.config)
    for (let i = 0; i < 20; i++) {
      // Large enough that what the last block of each has left over is below one per cent.
      const own = await client.pushBlob(name, randomBytes(410_000 + random.below(400_000)))
      layers.push(own)
      // Some share a layer with one that goes, and some with one that stays.
      const shared = layers[random.below(layers.length)]!
      const about = i % 5 === 4 ? { subject: images[random.below(images.length)] } : {}
      const tag = i % 5 === 4 ? undefined : i % 3 === 0 ? 'kept' : `v${random.below(4)}`
      const given = tag === 'kept' ? `kept${i}` : tag
      const image = imageOf(config, shared === own ? [own] : [own, shared], { ...about, annotations: { i: `${i}` } })
      images.push(await client.pushManifest(name, image, given))
      if (i % 6 === 5) await client.pushManifest(name, indexOf(images.slice(-2)), `v${random.below(4)}`)
    }
  }
  now += 3 * day
  const folder = join(app.config.data, 'blobs')
  const used = (): number =>
    Number(execFileSync('du', ['-s', '--block-size=1', folder], { encoding: 'utf8' }).split('\t')[0])
  const collect = async (): Promise<Json> => ok(await (await operator()).post('/control/v1/blobs:collect', {}))

  const { uid } = ok(await (await operator()).post(`/registry/v2/retentionPlans/${org.uid}`, {}))
  await runDuty(app, sweepRetention)
  const planOf = async () => ok(await (await operator()).get(`/registry/v2/retentionPlans/${uid}`))
  const { bytes } = await planOf()
  const { deletions } = ok(await (await operator()).get(`/registry/v2/retentionPlans/${uid}/deletions?pageSize=200`))
  const reader = await registry.registryAs(registry.pusher.uid)
  const repos = ok(await (await operator()).get(`/registry/v2/repos?uidp.descendants_of=${org.uid}`)).repos as Json[]
  // Manifests are rows of the database.
  let ofManifests = 0
  for (const { repoUid, digest } of deletions as Json[]) {
    const name = `acme/${repos.find((one) => one.uid === repoUid)!.name}`
    ofManifests += (await reader.ok(200, 'GET', `${name}/manifests/${digest}`)).bytes.length
  }
  ok(await (await operator()).post(`/registry/v2/retentionPlans/${uid}:apply`, {}))
  await runDuty(app, sweepRetention)
  assert.equal((await planOf()).deleted, String(deletions.length))
  assert.ok(deletions.length > 10, `${deletions.length}`)

  const before = used()
  now += day
  const collected = await collect()
  assert.equal(used(), before, 'all of it is in the trash')
  now += (trashSeconds + 60) * 1000
  await collect()
  const [said, freed] = [Number(bytes) - ofManifests, before - used()]
  assert.equal(Number(collected.bytes), said, 'of the contents themselves it is exact')
  assert.ok(Math.abs(freed - said) <= said / 100, `the plan says ${said}, the disk gave back ${freed}`)
  console.log(`the plan says ${said}, the disk gave back ${freed}`)
})
