import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import {
  type Descriptor,
  digestOf,
  imageOf,
  indexOf,
  startRegistry,
  type TestRegistry,
  types,
} from '../support/registry.ts'

const imageType = 'registry.pinfold.dev/Image'

let registry: TestRegistry
let repo: string
let viewer: Client

before(async () => {
  registry = await startRegistry()
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  viewer = await registry.as((await registry.seed.member(registry.org.uid, roleUids.viewer)).uid)
})
after(() => registry[Symbol.asyncDispose]())

const facts = (digest: string, what: string, client = viewer, uid = repo) =>
  client.get(`/registry/v2/repos/${uid}/digests/${digest}/${what}`)

let pushed = 0
/** An image of two layers, and the bytes that a pull of it transfers. */
async function pushImage(config: Json | string): Promise<{ image: Descriptor; size: number }> {
  const { pusher } = registry
  const layers = [
    await pusher.pushBlob('acme/app', `first ${pushed++}`),
    await pusher.pushBlob('acme/app', 'x'.repeat(1000 + pushed)),
  ]
  const text = typeof config === 'string' ? config : JSON.stringify(config)
  const described = await pusher.pushBlob('acme/app', text, types.config)
  const image = await pusher.pushManifest('acme/app', imageOf(described, layers))
  return { image, size: described.size + layers[0]!.size + layers[1]!.size }
}

const forPlatform = (image: Descriptor, architecture: string, more: Json = {}): Descriptor => ({
  ...image,
  platform: { os: 'linux', architecture, ...more },
})

test('an index shows each architecture of its images once, with a size, without attestations', async () => {
  const [amd, arm, armOld, proof] = await Promise.all(
    ['amd64', 'arm64', 'arm', 'unknown'].map((one) => pushImage({ architecture: one })),
  )
  const index = await registry.pusher.pushManifest(
    'acme/app',
    indexOf([
      forPlatform(arm!.image, 'arm64'),
      forPlatform(amd!.image, 'amd64'),
      forPlatform(armOld!.image, 'arm', { variant: 'v6' }),
      forPlatform(amd!.image, 'arm', { variant: 'v7' }),
      forPlatform(proof!.image, 'unknown'),
    ]),
    'latest',
  )
  assert.deepEqual(ok(await facts(index.digest, 'architectures')), { architectures: ['arm64', 'amd64', 'arm'] })
  assert.deepEqual(ok(await facts(index.digest, 'size')), { size: String(amd!.size), architecture: 'amd64' })
  for (const [architecture, { size }] of [['arm64', arm!] as const, ['arm', armOld!] as const]) {
    assert.deepEqual(ok(await facts(index.digest, `size?architecture=${architecture}`)), {
      size: String(size),
      architecture,
    })
  }
  for (const architecture of ['unknown', 's390x', 'AMD64']) {
    const answer = await facts(index.digest, `size?architecture=${architecture}`)
    assertNotFound(answer, imageType, `${index.digest} for ${architecture}`)
  }
})

test('a single-platform image shows the architecture in its configuration', async () => {
  const { image, size } = await pushImage({ architecture: 's390x', os: 'linux' })
  assert.deepEqual(ok(await facts(image.digest, 'architectures')), { architectures: ['s390x'] })
  assert.equal(ok(await facts(image.digest, 'size?architecture=s390x')).size, String(size))
  assertNotFound(await facts(image.digest, 'size'), imageType, `${image.digest} for amd64`)
})

test('reads index entries without a platform, and nested indexes', async () => {
  const [one, two] = [await pushImage({ architecture: 'riscv64' }), await pushImage({ architecture: 'ppc64le' })]
  const inner = await registry.pusher.pushManifest('acme/app', indexOf([two.image]))
  const outer = await registry.pusher.pushManifest('acme/app', indexOf([one.image, inner]))
  assert.deepEqual(ok(await facts(outer.digest, 'architectures')).architectures, ['riscv64', 'ppc64le'])
  assert.equal(ok(await facts(outer.digest, 'size?architecture=ppc64le')).size, String(two.size))
})

test('artifacts other than images have no architecture', async () => {
  for (const config of ['{}', 'not json', 'null', '{"architecture":7}', '{"architecture":""}']) {
    const { image } = await pushImage(config)
    assert.deepEqual(ok(await facts(image.digest, 'architectures')), { architectures: [] }, config)
    assert.equal((await facts(image.digest, 'size')).status, 404, config)
  }
})

test('returns NOT_FOUND for an unknown digest, an error for an invalid digest, and denies callers without access', async () => {
  const { image } = await pushImage({ architecture: 'amd64' })
  const missing = digestOf('missing')
  const other = (await registry.seed.repo(registry.org.uid)).uid
  for (const what of ['architectures', 'size']) {
    assertNotFound(await facts(missing, what), imageType, missing)
    assertNotFound(await facts(image.digest, what, viewer, other), imageType, image.digest)
    const nowhere = `${registry.org.uid}/${'0'.repeat(16)}`
    assertNotFound(await facts(image.digest, what, viewer, nowhere), 'registry.pinfold.dev/Repo', nowhere)
    for (const wrong of ['latest', 'sha256:abc', image.digest.toUpperCase(), `sha512:${'a'.repeat(128)}`]) {
      assertInvalid(await facts(wrong, what), 'digest')
    }
    const stranger = await registry.as(
      (await registry.seed.member((await registry.seed.group()).uid, roleUids.owner)).uid,
    )
    assertDenied(await facts(image.digest, what, stranger))
    assertDenied(await facts(missing, what, stranger))
  }
})

test('records a push, a tag update and a deletion at the registry in the tag history, with the caller', async () => {
  const { pusher, registryOperator } = registry
  const first = await pusher.pushImage('acme/app', 'moving')
  await pusher.ok(201, 'PUT', 'acme/app/manifests/moving', {
    body: (await pusher.ok(200, 'GET', `acme/app/manifests/${first.digest}`)).bytes,
    headers: { 'content-type': first.mediaType },
  })
  const second = await pusher.pushImage('acme/app', 'moving')
  await registryOperator.ok(202, 'DELETE', `acme/app/manifests/${second.digest}`)
  const { records } = ok(await viewer.get(`/registry/v2/repos/${repo}/tagHistory?tag=moving`))
  assert.deepEqual(
    records.map(({ event, digest, actor, source }: Json) => [event, digest, actor === pusher.uid, source]),
    [
      ['EVENT_DELETED', second.digest, false, 'SOURCE_OCI'],
      ['EVENT_MOVED', second.digest, true, 'SOURCE_OCI'],
      ['EVENT_CREATED', first.digest, true, 'SOURCE_OCI'],
    ],
  )
  const drafted = await registry.puller.ok(200, 'GET', 'acme/app/_oci/tag-history/moving')
  const described = drafted.body.manifests.map(({ digest, size, mediaType }: Json) => ({ digest, size, mediaType }))
  assert.deepEqual(described, [second, second, first], 'also of a manifest that is gone')
  const { body } = await registry.puller.ok(200, 'GET', 'acme/app/_svc/history/moving')
  assert.deepEqual(
    body.history.map(({ digest }: Json) => digest),
    [first.digest, second.digest],
  )
})
