// Indexes that list blobs, as caches of BuildKit do, and what of an index cannot be deleted.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fetchFollowed } from '#domains/registry/follows/fetches.duty.ts'
import { followUpstreams } from '#domains/registry/follows/follows.duty.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runDuty } from '../support/duties.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { codeOf, type Descriptor, imageOf, indexOf, startRegistry, types } from '../support/registry.ts'
import { localUpstreams, startUpstream } from '../support/upstream.ts'

const day = 86_400_000
let shift = 0
const registry = await startRegistry({ ...localUpstreams, clock: () => new Date(Date.now() + shift) })
after(() => registry[Symbol.asyncDispose]())
const { app, org, seed } = registry
const cacheConfig = 'application/vnd.buildkit.cacheconfig.v0'

let count = 0
async function place() {
  const name = `listed-${count++}`
  const repo = (await seed.repo(org.uid, { name })).uid as string
  return { repo, name: `acme/${name}`, pusher: await registry.registryAs(registry.pusher.uid) }
}

const uploaded = ({ digest, size }: Descriptor, mediaType: string) => ({ mediaType, digest, size })
const index = { headers: { 'content-type': types.index } }

/** A cache as BuildKit exports it. */
async function pushCache(at: Awaited<ReturnType<typeof place>>) {
  const { pusher, name } = at
  const layer = uploaded(await pusher.pushBlob(name, `layer of ${name}`), 'application/vnd.oci.image.layer.v1.tar+gzip')
  const config = uploaded(await pusher.pushBlob(name, `{"of":"${name}"}`), cacheConfig)
  const cache = indexOf([layer, config])
  await pusher.ok(201, 'PUT', `${name}/manifests/cache`, { body: JSON.stringify(cache), ...index })
  return { layer, config, cache }
}

async function collect(): Promise<Json> {
  const operator = await registry.as(operatorUid)
  return ok(await operator.post('/control/v1/blobs:collect', { dryRun: false }))
}

test('refuses an index that lists a blob which is not there, or a blob as a manifest', async () => {
  const { name, pusher } = await place()
  const blob = await pusher.pushBlob(name, 'some blob')
  const absent = { mediaType: cacheConfig, digest: `sha256:${'0'.repeat(64)}`, size: 1 }
  for (const entry of [absent, uploaded(blob, types.image)]) {
    const refused = await pusher.call('PUT', `${name}/manifests/x`, {
      body: JSON.stringify(indexOf([entry])),
      ...index,
    })
    assert.deepEqual([refused.status, codeOf(refused)], [404, 'MANIFEST_BLOB_UNKNOWN'])
  }
  const wrong = { ...uploaded(blob, types.layer), size: 1 }
  const refused = await pusher.call('PUT', `${name}/manifests/x`, { body: JSON.stringify(indexOf([wrong])), ...index })
  assert.deepEqual([refused.status, codeOf(refused)], [400, 'MANIFEST_INVALID'])
})

test('takes an entry of another media type that is a manifest, as before', async () => {
  const { name, pusher } = await place()
  const image = await pusher.pushManifest(name, imageOf(await pusher.pushBlob(name, '{}', types.empty), []), 'image')
  const odd = { mediaType: 'application/vnd.example.thing', digest: image.digest, size: image.size }
  await pusher.ok(201, 'PUT', `${name}/manifests/odd`, { body: JSON.stringify(indexOf([odd])), ...index })
})

test('a mirror and a copy of the repository have the blobs that an index lists', async () => {
  await using there = await startUpstream()
  const layer = there.add('upstream layer', types.layer)
  const config = there.add('{"up":"stream"}', cacheConfig)
  const cache = there.add(JSON.stringify({ ...indexOf([layer, config]), mediaType: types.index }), types.index)
  there.tags.set('cache', cache.digest)
  const operator = await registry.as(operatorUid)
  const { repo, name } = await place()
  const input = { name: `up-${count++}`, url: there.url }
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, input))
  const follow = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_FULL', tags: ['cache'] }
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, follow))
  await runDuty(app, followUpstreams)
  await runDuty(app, fetchFollowed)
  there.breakWith((_req, res) => {
    res.writeHead(503).end()
    return true
  })
  const puller = await registry.registryAs(registry.puller.uid)
  await puller.ok(200, 'GET', `${name}/manifests/${cache.digest}`)
  for (const { digest } of [layer, config]) await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
})

test('by a tag rule nobody deletes a manifest that a tagged index lists, in its scope alone', async () => {
  const [at, other] = [await place(), await place()]
  const operator = await registry.as(operatorUid)
  const made = await operator.post(`/registry/v2/tagRules/${at.repo}`, { tags: ['v*'], keepListed: true })
  const rule = ok(made)
  assert.equal(rule.keepListed, true)
  const images: Record<string, Descriptor> = {}
  for (const { name, pusher } of [at, other]) {
    const image = await pusher.pushManifest(name, imageOf(await pusher.pushBlob(name, '{"a":1}', types.config), []))
    const nested = await pusher.pushManifest(name, indexOf([image]), undefined)
    await pusher.pushManifest(name, indexOf([nested]), 'v1')
    images[name] = image
  }
  const remover = await registry.registryAs(operatorUid)
  const path = (name: string) => `${name}/manifests/${images[name]!.digest}`
  const refused = await remover.call('DELETE', path(at.name))
  assert.equal(refused.status, 409, JSON.stringify(refused.body))
  assert.match(JSON.stringify(refused.body), /by the tag v1, whose index lists it/)
  const kept = ok(await operator.get(`/registry/v2/repos/${at.repo}/promises/${images[at.name]!.digest}`))
  assert.deepEqual([kept.reason, kept.rule, kept.tags], ['LISTED', rule.uid, kept.tags])
  await remover.ok(202, 'DELETE', path(other.name))
  await remover.ok(202, 'DELETE', `${at.name}/manifests/v1`)
  await remover.ok(202, 'DELETE', path(at.name))
})

test('a tag rule says something, and what it says of listed manifests can be changed', async () => {
  const { repo } = await place()
  const operator = await registry.as(operatorUid)
  const empty = await operator.post(`/registry/v2/tagRules/${repo}`, { tags: ['v*'] })
  assert.equal(empty.status, 400)
  const rule = ok(await operator.post(`/registry/v2/tagRules/${repo}`, { immutable: true }))
  assert.equal(rule.keepListed ?? false, false)
  const changed = ok(await operator.patch(`/registry/v2/tagRules/${rule.uid}`, { keepListed: true, immutable: false }))
  assert.deepEqual([changed.keepListed, changed.immutable ?? false], [true, false])
})

// The last one: tokens do not last as long as the days that pass here.
test('stores a cache index of BuildKit and keeps its blobs as long as the index', async () => {
  const at = await place()
  const { layer, config } = await pushCache(at)
  shift += 10 * day
  await collect()
  const pusher = await registry.registryAs(registry.pusher.uid)
  for (const { digest } of [layer, config]) {
    await pusher.ok(200, 'GET', `${at.name}/blobs/${digest}`)
    const remover = await registry.registryAs(operatorUid)
    const refused = await remover.call('DELETE', `${at.name}/blobs/${digest}`)
    assert.deepEqual([refused.status, codeOf(refused)], [409, 'DENIED'])
  }
  const remover = await registry.registryAs(operatorUid)
  const pulled = await pusher.ok(200, 'GET', `${at.name}/manifests/cache`)
  await remover.ok(202, 'DELETE', `${at.name}/manifests/${pulled.headers['docker-content-digest']}`)
  shift += 10 * day
  await collect()
  const late = await registry.registryAs(registry.pusher.uid)
  for (const { digest } of [layer, config]) await late.ok(404, 'GET', `${at.name}/blobs/${digest}`)
})
