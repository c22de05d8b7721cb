// Limits on the size of manifests. Larger manifests from earlier versions stay readable.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readManifest } from '#domains/registry/manifests/manifest-document.ts'
import { manifestLimits } from '#domains/registry/manifests/manifest-json.ts'
import { insertLinks, insertManifest } from '#domains/registry/manifests/manifests.store.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import {
  codeOf,
  type Descriptor,
  digestOf,
  imageOf,
  indexOf,
  startRegistry,
  type TestRegistry,
  types,
} from '../support/registry.ts'

let registry: TestRegistry
before(async () => {
  registry = await startRegistry({ sparseManifests: 'all' })
})
after(() => registry[Symbol.asyncDispose]())

const name = 'acme/app'
const put = (body: string, reference: string, mediaType: string) =>
  registry.pusher.call('PUT', `${name}/manifests/${reference}`, { body, headers: { 'content-type': mediaType } })
const push = (manifest: Json) => {
  const body = JSON.stringify(manifest)
  return put(body, digestOf(body), manifest.mediaType)
}
/** A descriptor of content that does not exist. */
const absent = (i: number, more: Json = {}): Descriptor => {
  return { mediaType: types.image, size: 500, digest: `sha256:${i.toString(16).padStart(64, '0')}`, ...more }
}
const config = absent(1, { mediaType: types.config })
const annotationsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`dev.example.key-${i}`, `value ${i}`]))
const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])

async function refused(manifest: Json, message: RegExp): Promise<void> {
  const answer = await push(manifest)
  assert.deepEqual([answer.status, codeOf(answer)], [400, 'MANIFEST_INVALID'])
  assert.match(answer.body.errors[0].message, message)
}

test('refuses a manifest with 200,000 annotations before building any object', async () => {
  const annotations = Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`a${i}`, '']))
  const body = JSON.stringify(imageOf(config, [], { annotations }))
  const { parse } = JSON
  let parsed = 0
  JSON.parse = (text, reviver) => {
    if (text.length > 1_000_000) parsed++
    return parse(text, reviver)
  }
  const answer = await put(body, digestOf(body), types.image).finally(() => {
    JSON.parse = parse
  })
  assert.deepEqual([answer.status, codeOf(answer), parsed], [400, 'MANIFEST_INVALID', 0])
  assert.match(answer.body.errors[0].message, /more than 20000 JSON members/)
})

test('an annotations object has at most 1,000 entries, at each level', async () => {
  const [most, many] = [{ annotations: annotationsOf(1000) }, { annotations: annotationsOf(1001) }]
  assert.equal((await push(imageOf({ ...config, ...most }, [absent(2, most)], most))).status, 201)
  const manifests = [
    imageOf(config, [], many),
    imageOf({ ...config, ...many }, []),
    imageOf(config, [absent(2), absent(3, many)]),
    imageOf(config, [], { subject: absent(4, many) }),
    indexOf([absent(5, many)]),
    indexOf([absent(5)], { other: [{ deep: many }] }),
  ]
  for (const manifest of manifests) await refused(manifest, /annotations with more than 1000 entries/)
})

test('a manifest has at most 20,000 members and elements, and 32 levels', async () => {
  const bare = imageOf(config, [], { other: [] })
  // Members of the manifest, and members of its config.
  const members = Object.keys(bare).length + 3
  const of = (count: number) => ({ ...bare, other: Array.from({ length: count }, () => 0) })
  assert.equal((await push(of(20_000 - members))).status, 201)
  await refused(of(20_001 - members), /more than 20000 JSON members/)
  assert.equal((await push({ ...bare, other: nested(31) })).status, 201)
  await refused({ ...bare, other: nested(32) }, /nested deeper than 32 levels/)
})

const platform = { os: 'linux', architecture: 'arm64', variant: 'v8', 'os.version': '1' }

test('accepts an index with 2,000 manifests with platforms and annotations, and refuses a larger one', async () => {
  const entries = Array.from({ length: 2000 }, (_, i) => absent(i, { platform, annotations: annotationsOf(8) }))
  const members = 2000 * (6 + 4 + 8)
  assert.ok(members > manifestLimits.members)
  const index = indexOf(entries)
  assert.equal((await push(index)).status, 201)
  const { body } = await registry.puller.ok(200, 'GET', `${name}/manifests/${digestOf(JSON.stringify(index))}`)
  assert.equal(body.manifests.length, 2000)
  await refused(indexOf([...entries, absent(2000)]), /manifests must have at most 2000 entries/)
  // With fewer manifests, the limit on the total number of members applies.
  const few = Array.from({ length: 50 }, (_, i) => absent(i, { annotations: annotationsOf(500) }))
  await refused(indexOf(few), /more than 20000 JSON members/)
})

test('parses a pushed manifest once, however many tags it gets', async () => {
  const subject = absent(7)
  const layer = absent(8, { mediaType: 'application/vnd.dsse.envelope.v1+json' })
  const body = JSON.stringify(imageOf(config, [layer], { subject, artifactType: 'application/vnd.in-toto+json' }))
  const { parse } = JSON
  let parsed = 0
  JSON.parse = (text, reviver) => {
    if (text === body) parsed++
    return parse(text, reviver)
  }
  const tags = [9, 10, 11].map((i) => `tag=${absent(i).digest.replace(':', '-')}.att`)
  const answer = await put(body, `${digestOf(body)}?${tags.join('&')}`, types.image).finally(() => {
    JSON.parse = parse
  })
  assert.deepEqual([answer.status, parsed], [201, 1])
})

test('refuses a manifest with a duplicate member, also in annotations', async () => {
  const body = JSON.stringify(imageOf(config, [], { annotations: { a: '1', b: '2' } })).replace(
    '"b":"2"',
    '"\\u0061":"2"',
  )
  const answer = await put(body, digestOf(body), types.image)
  assert.deepEqual([answer.status, codeOf(answer)], [400, 'MANIFEST_INVALID'])
  assert.match(answer.body.errors[0].message, /"a" occurs twice/)
})

test('a stored manifest above the limits can be pulled, tagged, listed and explained', async () => {
  const { org, app, puller, operator, seed } = registry
  const { uid } = await seed.repo(org.uid, { name: 'old' })
  const subject = await registry.pusher.pushManifest('acme/old', imageOf(config, []))
  const real = await registry.pusher.pushBlob('acme/old', '{"architecture":"amd64","os":"linux"}', types.config)
  const layer = await registry.pusher.pushBlob('acme/old', 'a layer')
  const manifest = imageOf(real, [layer], { subject, annotations: annotationsOf(30_000) })
  const content = Buffer.from(JSON.stringify(manifest))
  const digest = digestOf(content)
  const document = readManifest(content, types.image)
  const repo = (await app.paths.find(uid)).repo!
  await app.db.tx(async (tx) => {
    await insertManifest(tx, repo, { digest, mediaType: types.image, content }, document, 0, '2026-01-01T00:00:00.000Z')
    await insertLinks(tx, repo.id, digest, 0, document.blobs)
  })
  const headers = { 'content-type': types.image }
  const tagged = await registry.pusher.call('PUT', 'acme/old/manifests/old', { body: content, headers })
  assert.equal(tagged.status, 201)
  const mistyped = { 'content-type': types.index }
  const wrong = await registry.pusher.call('PUT', 'acme/old/manifests/old', { body: content, headers: mistyped })
  assert.deepEqual([wrong.status, codeOf(wrong)], [400, 'MANIFEST_INVALID'])
  const pulled = await puller.ok(200, 'GET', 'acme/old/manifests/old')
  assert.equal(pulled.headers['docker-content-digest'], digest)
  const referrers = await puller.ok(200, 'GET', `acme/old/referrers/${subject.digest}`)
  assert.deepEqual(
    referrers.body.manifests.map((one: Json) => one.digest),
    [digest],
  )
  ok(await operator.get(`/registry/v2/repos/${uid}/digests/${digest}/size`))
  ok(await operator.get(`/registry/v2/repos/${uid}/resolvedTags/old`))
  // Another repository, which never had the manifest, refuses it.
  assert.equal((await put(content.toString(), 'old', types.image)).status, 400)
})
