// Version 1 of images: architectures, sizes and configurations, and the answers of a server without reports.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
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
let token: string
let viewer: Client
let stranger: Client
before(async () => {
  registry = await startRegistry()
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  token = await registry.tokenFor((await registry.seed.member(registry.org.uid, roleUids.viewer)).uid)
  viewer = registry.withToken(token)
  stranger = await registry.as((await registry.seed.person()).uid)
})
after(() => registry[Symbol.asyncDispose]())

const facts = (digest: string, what: string, client = viewer, uid = repo) =>
  client.get(`/registry/v1/repos/${uid}/digests/${digest}/${what}`)

async function pushImage(config: Json | string): Promise<{ image: Descriptor; size: number }> {
  const text = typeof config === 'string' ? config : JSON.stringify(config)
  const layer = await registry.pusher.pushBlob('acme/app', `layer of ${text.slice(0, 100)}`)
  const described = await registry.pusher.pushBlob('acme/app', text, types.config)
  const image = await registry.pusher.pushManifest('acme/app', imageOf(described, [layer]))
  return { image, size: described.size + layer.size }
}

const run = {
  User: '65532',
  ExposedPorts: { '80/tcp': {}, '443/tcp': {} },
  Env: ['PATH=/usr/bin'],
  Entrypoint: ['/bin/app'],
  Cmd: ['--help'],
  Volumes: { '/data': {} },
  WorkingDir: '/work',
  Labels: { a: 'b' },
  StopSignal: 'SIGTERM',
}
const told = {
  user: '65532',
  exposedPorts: { '80/tcp': {}, '443/tcp': {} },
  env: ['PATH=/usr/bin'],
  entrypoint: ['/bin/app'],
  cmd: ['--help'],
  volumes: { '/data': {} },
  workingDir: '/work',
  labels: { a: 'b' },
  stopSignal: 'SIGTERM',
}

test('an index shows its architectures, each with a size and a configuration', async () => {
  const amd = await pushImage({ architecture: 'amd64', os: 'linux', config: run })
  const arm = await pushImage({ architecture: 'arm64', os: 'linux', config: { User: 'root' } })
  const platform = (image: Descriptor, architecture: string) => ({ ...image, platform: { os: 'linux', architecture } })
  const index = await registry.pusher.pushManifest(
    'acme/app',
    indexOf([platform(arm.image, 'arm64'), platform(amd.image, 'amd64')]),
  )
  assert.deepEqual(ok(await facts(index.digest, 'architectures')), { archs: ['arm64', 'amd64'] })
  assert.deepEqual(ok(await facts(index.digest, 'size')), { size: String(amd.size), arch: 'amd64' })
  assert.deepEqual(ok(await facts(index.digest, 'size?arch=arm64')), { size: String(arm.size), arch: 'arm64' })
  assert.deepEqual(ok(await facts(index.digest, 'imageconfig')), told)
  assert.deepEqual(ok(await facts(index.digest, 'imageconfig?registry=true')), told)
  assert.equal(ok(await facts(index.digest, 'imageconfig?arch=arm64')).user, 'root')
  assertNotFound(await facts(index.digest, 'imageconfig?arch=s390x'), imageType, `${index.digest} for s390x`)

  using grpc = grpcClientOf(registry, Registry, token)
  const { digest } = index
  assert.deepEqual((await grpc.getArchs({ repoId: repo, digest })).archs, ['arm64', 'amd64'])
  assert.equal((await grpc.getSize({ repoId: repo, digest })).size, BigInt(amd.size))
  const { entrypoint, exposedPorts, labels } = await grpc.getImageConfig({ repoId: repo, digest })
  assert.deepEqual([entrypoint, Object.keys(exposedPorts), labels], [['/bin/app'], ['80/tcp', '443/tcp'], { a: 'b' }])
})

test('accepts any configuration, and ignores values of a wrong type', async () => {
  const wrong = {
    User: 7,
    ExposedPorts: [1],
    Env: [1, 'A=b'],
    Entrypoint: '/bin/sh',
    Labels: { a: 1, b: 'c' },
    Volumes: null,
  }
  for (const config of [wrong, null, 'text', []]) {
    const { image } = await pushImage({ architecture: 'amd64', config })
    const { env, labels, user, entrypoint } = ok(await facts(image.digest, 'imageconfig'))
    const some = config === wrong
    assert.deepEqual([user, entrypoint, env, labels], ['', [], some ? ['A=b'] : [], some ? { b: 'c' } : {}])
  }
  const proto = await pushImage('{"architecture":"amd64","config":{"Labels":{"__proto__":"x","constructor":"y"}}}')
  assert.match((await facts(proto.image.digest, 'imageconfig')).text, /"__proto__":"x","constructor":"y"/)
})

test('does not read a configuration that is too large', async () => {
  const { image } = await pushImage(`{"architecture":"amd64","x":"${'x'.repeat(4 * 1024 * 1024)}"}`)
  const index = await registry.pusher.pushManifest(
    'acme/app',
    indexOf([{ ...image, platform: { architecture: 'amd64' } }]),
  )
  assertBlocked(await facts(index.digest, 'imageconfig'), index.digest, 'IMAGE_TOO_LARGE')
})

test('returns NOT_FOUND for an unknown digest, names an invalid one, and denies callers without access', async () => {
  const missing = digestOf('missing')
  for (const what of ['architectures', 'size', 'imageconfig']) {
    assertNotFound(await facts(missing, what), imageType, missing)
    assertInvalid(await facts('latest', what), 'digest')
    assertDenied(await facts(missing, what, stranger))
  }
})

test('a server without reports returns an empty list, and names invalid parameters', async () => {
  const missing = digestOf('missing')
  const at = (path: string, client = viewer) => client.get(`/registry/v1/${path}`)
  assert.deepEqual(ok(await at(`vuln_reports?repo_id=${repo}`)), { items: [] })
  assert.deepEqual(ok(await at(`vuln_reports?digest=${missing}`, stranger)), { items: [] })
  assertInvalid(await at('vuln_reports'), 'repo_id')
  assertInvalid(await at('vuln_reports?digest=latest'), 'digest')
  assertNotFound(await at(`vuln_reports/raw?digest=${missing}`), 'registry.pinfold.dev/VulnReport', missing)
  for (const path of ['vuln_reports/counts', 'vuln_reports/counts_cumulative']) {
    assert.deepEqual(ok(await at(`${path}?repo=app&from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z`)), { items: [] })
    assertInvalid(await at(`${path}?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z`), 'to')
  }
  assertNotFound(await facts(missing, 'vulnreport'), 'registry.pinfold.dev/VulnReport', missing)
  assertInvalid(await facts('latest', 'vulnreport'), 'digest')
  assertDenied(await facts(missing, 'vulnreport', stranger))

  using grpc = grpcClientOf(registry, Vulnerabilities, token)
  const references = [{ repo: 'app', tag: 'latest' }]
  assert.deepEqual((await grpc.listVulnCountReports({ references })).items, [])
  assert.deepEqual((await grpc.listCumulativeVulnCountReports({ references })).items, [])
  assert.deepEqual((await grpc.listVulnReports({ repoId: repo })).items, [])
  await assert.rejects(grpc.getRawVulnReport({ digest: missing }), { code: 5 })
})
