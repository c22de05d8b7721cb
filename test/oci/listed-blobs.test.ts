// Indexes that list blobs, such as BuildKit caches, and parts of an index that cannot be deleted.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fetchFollowed } from '#domains/mirrors/follows/fetches.job.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { codeOf, type Descriptor, imageOf, indexOf, startRegistry, types } from '../support/registry.ts'
import { localUpstreams, startUpstream } from '../support/upstream.ts'

const day = 86_400_000
let shift = 0
const registry = await startRegistry({ ...localUpstreams, clock: () => new Date(Date.now() + shift) })
after(() => registry[Symbol.asyncDispose]())
const { app, org, seed } = registry
const cacheConfig = 'application/vnd.buildkit.cacheconfig.v0'

let count = 0
async function createRepo() {
  const name = `listed-${count++}`
  const repo = (await seed.repo(org.uid, { name })).uid as string
  return { repo, name: `acme/${name}`, pusher: await registry.registryAs(registry.pusher.uid) }
}

const uploaded = ({ digest, size }: Descriptor, mediaType: string) => ({ mediaType, digest, size })
const index = { headers: { 'content-type': types.index } }

/** A cache as BuildKit exports it. */
async function pushCache({ name }: { name: string }) {
  const pusher = await registry.registryAs(registry.pusher.uid)
  const layer = uploaded(await pusher.pushBlob(name, `layer of ${name}`), 'application/vnd.oci.image.layer.v1.tar+gzip')
  const config = uploaded(await pusher.pushBlob(name, `{"of":"${name}"}`), cacheConfig)
  const cache = indexOf([layer, config])
  const pushed = await pusher.ok(201, 'PUT', `${name}/manifests/cache`, { body: JSON.stringify(cache), ...index })
  return { layer, config, cache, digest: String(pushed.headers['docker-content-digest']) }
}

async function collect(): Promise<Json> {
  const operator = await registry.as(operatorUid)
  return ok(await operator.post('/control/v1/blobs:collect', { dryRun: false }))
}

test('refuses an index with a missing blob, or with a blob described as a manifest', async () => {
  const { name, pusher } = await createRepo()
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

test('accepts an index entry with another media type if it is a manifest', async () => {
  const { name, pusher } = await createRepo()
  const image = await pusher.pushManifest(name, imageOf(await pusher.pushBlob(name, '{}', types.empty), []), 'image')
  const odd = { mediaType: 'application/vnd.example.thing', digest: image.digest, size: image.size }
  await pusher.ok(201, 'PUT', `${name}/manifests/odd`, { body: JSON.stringify(indexOf([odd])), ...index })
})

test('a mirror and a copy of the repository include the blobs in an index', async () => {
  await using there = await startUpstream()
  const layer = there.add('upstream layer', types.layer)
  const config = there.add('{"up":"stream"}', cacheConfig)
  const cache = there.add(JSON.stringify({ ...indexOf([layer, config]), mediaType: types.index }), types.index)
  there.tags.set('cache', cache.digest)
  const operator = await registry.as(operatorUid)
  const { repo, name } = await createRepo()
  const input = { name: `up-${count++}`, url: there.url }
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, input))
  const follow = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_FULL', tags: ['cache'] }
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, follow))
  await runJob(app, followUpstreams)
  await runJob(app, fetchFollowed)
  there.breakWith((_req, res) => {
    res.writeHead(503).end()
    return true
  })
  const puller = await registry.registryAs(registry.puller.uid)
  await puller.ok(200, 'GET', `${name}/manifests/${cache.digest}`)
  for (const { digest } of [layer, config]) await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
})

test('a tag rule protects the manifests in a tagged index, only in its scope', async () => {
  const [at, other] = [await createRepo(), await createRepo()]
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
  assert.match(JSON.stringify(refused.body), /the tag v1 is an index that lists it/)
  const kept = ok(await operator.get(`/registry/v2/repos/${at.repo}/promises/${images[at.name]!.digest}`))
  assert.deepEqual([kept.reason, kept.rule, kept.tags], ['LISTED', rule.uid, kept.tags])
  await remover.ok(202, 'DELETE', path(other.name))
  await remover.ok(202, 'DELETE', `${at.name}/manifests/v1`)
  await remover.ok(202, 'DELETE', path(at.name))
})

test('the tag rule option for manifests in an index can be changed', async () => {
  const { repo } = await createRepo()
  const operator = await registry.as(operatorUid)
  const empty = await operator.post(`/registry/v2/tagRules/${repo}`, { tags: ['v*'] })
  assert.equal(empty.status, 400)
  const rule = ok(await operator.post(`/registry/v2/tagRules/${repo}`, { immutable: true }))
  assert.equal(rule.keepListed ?? false, false)
  const changed = ok(await operator.patch(`/registry/v2/tagRules/${rule.uid}`, { keepListed: true, immutable: false }))
  assert.deepEqual([changed.keepListed, changed.immutable ?? false], [true, false])
})

test('refuses pulls of blobs that only a quarantined index lists, until its release', async () => {
  const at = await createRepo()
  const { layer, config, digest } = await pushCache(at)
  const image = await at.pusher.pushManifest(at.name, imageOf({ ...config, mediaType: types.config }, []), 'clean')
  const operator = await registry.as(operatorUid)
  const why = { digest, reason: 'it holds a secret' }
  const { uid } = ok(await operator.post(`/registry/v2/quarantined/${at.repo}:quarantine`, why))
  const statusOf = async (path: string) => (await at.pusher.call('GET', `${at.name}/${path}`)).status
  for (const path of [`manifests/${digest}`, `blobs/${layer.digest}`]) assert.equal(await statusOf(path), 403)
  for (const path of [`manifests/${image.digest}`, `blobs/${config.digest}`]) assert.equal(await statusOf(path), 200)
  ok(await operator.post(`/registry/v2/quarantined/${uid}:release`, {}))
  for (const path of [`manifests/${digest}`, `blobs/${layer.digest}`]) assert.equal(await statusOf(path), 200)
})

// Tokens expire before the following days are over, so the repositories are created now.
const [ofRule, ofPlan, ofCollection] = [await createRepo(), await createRepo(), await createRepo()]

test('a cooldown policy allows the blobs in an index as soon as it allows the index', async () => {
  const at = ofRule
  await registry.seed.subscription(org.uid)
  const runner = (await seed.member(org.uid, roleUids.pull)).uid as string
  const given = { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER' }
  ok(await (await registry.as(operatorUid)).post(`/registry/v2/pullRules/${at.repo}`, given))
  const { layer, config, digest } = await pushCache(at)
  for (const status of [403, 200]) {
    const puller = await registry.registryAs(runner)
    for (const path of [`manifests/${digest}`, `blobs/${layer.digest}`, `blobs/${config.digest}`]) {
      await puller.ok(status, 'GET', `${at.name}/${path}`)
    }
    shift += 20 * day
  }
})

test('a retention plan does not count blobs that a kept index lists', async () => {
  const { repo, name } = ofPlan
  const asked = async (path: string, body?: Json) => {
    const operator = await registry.as(operatorUid)
    return ok(await (body ? operator.post(`/registry/v2/${path}`, body) : operator.get(`/registry/v2/${path}`)))
  }
  const pusher = await registry.registryAs(registry.pusher.uid)
  const [layer, config] = [await pusher.pushBlob(name, 'a layer', types.layer), await pusher.pushBlob(name, '{"p":1}')]
  const old = await pusher.pushManifest(name, imageOf({ ...config, mediaType: types.config }, [layer]), 'v1')
  await pusher.pushImage(name, 'v1')
  await pusher.pushManifest(name, indexOf([uploaded(layer, types.layer), uploaded(config, cacheConfig)]), 'cache')
  await asked(`retentionRules/${repo}`, { mode: 'ENFORCE', tags: ['v*'], keepDaysAfter: 10 })
  shift += 11 * day
  const { uid } = await asked(`retentionPlans/${repo}`, {})
  await runJob(app, sweepRetention)
  const { deletions } = await asked(`retentionPlans/${uid}/deletions`)
  assert.deepEqual(
    deletions.map(({ digest, bytes }: Json) => [digest, Number(bytes)]),
    [[old.digest, old.size]],
  )
})

test('stores a BuildKit cache index, and keeps its blobs as long as the index', async () => {
  const at = ofCollection
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
