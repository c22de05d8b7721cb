// Contents of images in version 1: SBOMs as they were pushed and as graphs, packages, and numbers of manifests.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { startWorkers, type Workers } from '#workers.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { allRead, alpine, pushLayers, pushSbom } from '../support/images.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { type Descriptor, digestOf, indexOf, startRegistry, type TestRegistry } from '../support/registry.ts'

let registry: TestRegistry
let reader: Workers
let token: string
let viewer: Client
before(async () => {
  registry = await startRegistry()
  reader = await startWorkers(registry.app, { jobs: [readImages] })
  token = await registry.tokenFor((await registry.seed.member(registry.org.uid, roleUids.viewer)).uid)
  viewer = registry.withToken(token)
})
after(async () => {
  await reader.close()
  await registry[Symbol.asyncDispose]()
})

let repos = 0
async function newRepo() {
  const name = `app${repos++}`
  return { name: `acme/${name}`, repo: (await registry.seed.repo(registry.org.uid, { name })).uid as string }
}
/** Each image has content of its own. */
const pushImage = (name: string) => pushLayers(registry.pusher, name, [alpine('alpine-3.10'), { 'etc/motd': name }])
const sbomOf = (repo: string, digest: string, client = viewer) =>
  client.get(`/registry/v1/repos/${repo}/digests/${digest}/sbom`)
const rawOf = (repo: string, digest: string, client = viewer) =>
  client.get(`/registry/v1/repos/${repo}/digest/${digest}/rawsbom`)

const spdx = {
  spdxVersion: 'SPDX-2.3',
  SPDXID: 'SPDXRef-DOCUMENT',
  name: 'app',
  creationInfo: { created: '2026-01-02T03:04:05Z', creators: ['Tool: maker-1.0', 'Organization: Acme', 7] },
  packages: [
    {
      SPDXID: 'SPDXRef-a',
      name: 'musl',
      versionInfo: '1.2.3-r0',
      licenseConcluded: 'NOASSERTION',
      licenseDeclared: 'MIT',
      externalRefs: [{ referenceType: 'purl', referenceLocator: 'pkg:apk/alpine/musl@1.2.3-r0' }],
    },
  ],
  files: [{ SPDXID: 'SPDXRef-f', fileName: '/lib/ld.so', fileTypes: ['BINARY'] }],
  relationships: [
    { spdxElementId: 'SPDXRef-DOCUMENT', relatedSpdxElement: 'SPDXRef-a', relationshipType: 'DESCRIBES' },
    { spdxElementId: 'SPDXRef-f', relatedSpdxElement: 'SPDXRef-a', relationshipType: 'CONTAINED_BY' },
    { spdxElementId: 'SPDXRef-a', relatedSpdxElement: 'SPDXRef-f', relationshipType: 'constructor' },
  ],
}
const edgesOf = ({ graph }: Json) =>
  graph.edges.map(({ subjectId, predicateId, type }: Json) => [subjectId, predicateId, type ?? 'UNKNOWN'])

test('returns an SBOM as it was pushed, and as a graph', async () => {
  const { name, repo } = await newRepo()
  const image = await pushImage(name)
  const text = `${JSON.stringify(spdx, undefined, 1)}\n`
  await pushSbom(registry.pusher, name, image, text)
  assert.equal(ok(await rawOf(repo, image.digest)).rawSbom, text)

  const told = ok(await sbomOf(repo, image.digest))
  assert.equal(Buffer.from(told.rawSbom, 'base64').toString(), text)
  const { id, digest, tool, format, authors, source, name: document, generatedAt } = told
  assert.deepEqual(
    { id, digest, tool, format, authors, source, document, generatedAt },
    {
      id: image.digest,
      digest: digestOf(text),
      tool: 'maker-1.0',
      format: 'spdx',
      authors: 'Acme',
      source: 'INGESTED',
      document: 'app',
      generatedAt: '2026-01-02T03:04:05Z'.replace('Z', '.000Z'),
    },
  )
  const [first, second] = told.graph.nodes
  const { name: musl, version, license, purl } = first.package
  assert.deepEqual([musl, version, license, purl], ['musl', '1.2.3-r0', 'MIT', 'pkg:apk/alpine/musl@1.2.3-r0'])
  assert.deepEqual([second.file.name, second.file.types], ['/lib/ld.so', ['BINARY']])
  assert.deepEqual(edgesOf(told), [
    ['SPDXRef-DOCUMENT', 'SPDXRef-a', 'DESCRIBES'],
    ['SPDXRef-a', 'SPDXRef-f', 'CONTAINS'],
    ['SPDXRef-a', 'SPDXRef-f', 'UNKNOWN'],
  ])

  using grpc = grpcClientOf(registry, Registry, token)
  assert.equal((await grpc.getRawSbom({ repoId: repo, digest: image.digest })).rawSbom, text)
  const overGrpc = await grpc.getSbom({ repoId: repo, digest: image.digest })
  assert.deepEqual([overGrpc.id, overGrpc.graph!.nodes.length, overGrpc.source], [image.digest, 2, 1])
})

test('returns CycloneDX as a graph too, and finds an SBOM that refers to the index by the index', async () => {
  const { name, repo } = await newRepo()
  const image = await pushImage(name)
  const index = await registry.pusher.pushManifest(name, indexOf([{ ...image, platform: { architecture: 'amd64' } }]))
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    metadata: {
      tools: { components: [{ name: 'maker', version: '2' }] },
      component: { 'bom-ref': 'app', name: 'app' },
    },
    components: [
      {
        'bom-ref': 'a',
        name: 'a',
        licenses: [{ license: { id: 'MIT' } }, { expression: 'ISC' }],
        components: [{ 'bom-ref': 'b', name: 'b' }],
      },
    ],
    dependencies: [{ ref: 'app', dependsOn: ['a', 7] }],
  }
  await pushSbom(registry.pusher, name, index, JSON.stringify(document), 'application/vnd.cyclonedx+json')
  const told = ok(await sbomOf(repo, index.digest))
  assert.deepEqual([told.id, told.format, told.tool, told.name], [image.digest, 'cyclonedx', 'maker-2', 'app'])
  const nodes = told.graph.nodes.map((node: Json) => [node.package.id, node.package.license])
  assert.deepEqual(nodes.sort(), [
    ['a', 'MIT AND ISC'],
    ['app', ''],
    ['b', ''],
  ])
  assert.deepEqual(edgesOf(told), [
    ['a', 'b', 'CONTAINS'],
    ['app', 'a', 'DEPENDS_ON'],
  ])
  assert.ok(ok(await rawOf(repo, index.digest)).rawSbom.startsWith('{"bomFormat"'))
})

test('without an SBOM, the graph contains the contents of the layers', async () => {
  const { name, repo } = await newRepo()
  const image = await pushImage(name)
  await allRead(registry)
  assertNotFound(await rawOf(repo, image.digest), 'registry.pinfold.dev/Image', `an SBOM of ${image.digest}`)
  const told = ok(await sbomOf(repo, image.digest))
  assert.deepEqual([told.source, told.rawSbom, told.graph.nodes.length], ['GENERATED', '', 14])
  const purls = told.graph.nodes.map((node: Json) => node.package.purl)
  assert.ok(purls.includes('pkg:apk/alpine/ssl_client@1.30.1-r3?arch=x86_64'), purls.join(' '))
})

test('returns any pushed document as an SBOM, up to the size limit of the response', async () => {
  const { name, repo } = await newRepo()
  const image = await pushImage(name)
  await allRead(registry)
  for (const text of ['not json', '{}', '{"bomFormat":"CycloneDX","components":7,"dependencies":{},"metadata":[]}']) {
    await pushSbom(registry.pusher, name, image, text)
    assert.equal(ok(await rawOf(repo, image.digest)).rawSbom, text)
    assert.equal((await sbomOf(repo, image.digest)).status, 200)
  }
  const dependencies = [{ ref: 'r'.repeat(1_000_000), dependsOn: Array.from({ length: 100_000 }, () => 'a') }]
  await pushSbom(registry.pusher, name, image, JSON.stringify({ bomFormat: 'CycloneDX', dependencies }))
  assertBlocked(await sbomOf(repo, image.digest), image.digest, 'IMAGE_TOO_LARGE')
  await pushSbom(registry.pusher, name, image, `{"bomFormat":"CycloneDX","components":[${'[],'.repeat(600_000)}0]}`)
  assertBlocked(await sbomOf(repo, image.digest), image.digest, 'IMAGE_TOO_LARGE')
  await pushSbom(registry.pusher, name, image, ' '.repeat(8 * 1024 * 1024 + 1))
  assertBlocked(await rawOf(repo, image.digest), image.digest, 'IMAGE_TOO_LARGE')
})

test('lists the packages of images by digest, by index, or for the whole repository', async () => {
  const { name, repo } = await newRepo()
  const image = await pushImage(name)
  const index = await registry.pusher.pushManifest(name, indexOf([{ ...image, platform: { architecture: 'amd64' } }]))
  const sbom = { spdxVersion: 'SPDX-2.3', packages: spdx.packages }
  const other = await pushLayers(registry.pusher, name, [{ 'etc/motd': 'other' }])
  await pushSbom(registry.pusher, name, other, JSON.stringify(sbom))
  await allRead(registry)
  const { items } = ok(await viewer.get(`/registry/v1/repos/${repo}/manifestmetdata`))
  const digests = (found: readonly { digest: string }[]) => found.map(({ digest }) => digest)
  assert.deepEqual(digests(items), [image.digest, other.digest].sort())
  const one = items.find(({ digest }: Descriptor) => digest === image.digest)
  const client = one.pkgMetadata.find(({ purl }: Json) => purl.includes('ssl_client'))
  assert.match(client.originPurl, /^pkg:apk\/alpine\/busybox@1\.30\.1-r3/)

  using grpc = grpcClientOf(registry, Registry, token)
  const asked = async (filter: Json) =>
    digests((await grpc.listManifestMetadata({ repoId: repo, items: [{ filter } as never] })).items)
  assert.deepEqual(await asked({ case: 'imageDigest', value: other.digest }), [other.digest])
  assert.deepEqual(await asked({ case: 'indexFilter', value: { digest: index.digest, arch: 'amd64' } }), [image.digest])
  assert.deepEqual(await asked({ case: 'indexFilter', value: { digest: index.digest, arch: 's390x' } }), [])
  assert.deepEqual(await asked({ case: 'imageDigest', value: digestOf('missing') }), [])
  await assert.rejects(asked({ case: 'imageDigest', value: 'latest' }), { code: 3, fields: ['items[0]'] })
  const many = Array.from({ length: 101 }, () => ({ filter: { case: 'imageDigest', value: other.digest } as const }))
  await assert.rejects(grpc.listManifestMetadata({ repoId: repo, items: many }), { code: 3, fields: ['items'] })

  const count = async (scope: string) => ok(await viewer.get(`/registry/v1/digestcount/${scope}`)).count
  assert.equal(await count(repo), '4')
  assert.ok(Number(await count(registry.org.uid)) > 4)
  assert.equal(await count(`${registry.org.uid}/${'0'.repeat(16)}`), '0')
})

test('denies callers without access, and names an invalid digest', async () => {
  const { name, repo } = await newRepo()
  const { digest } = await pushImage(name)
  const stranger = await registry.as((await registry.seed.person()).uid)
  for (const read of [sbomOf, rawOf]) {
    assertDenied(await read(repo, digest, stranger))
    assertInvalid(await read(repo, 'latest'), 'digest')
  }
  assertDenied(await stranger.get(`/registry/v1/repos/${repo}/manifestmetdata`))
  assertDenied(await stranger.get(`/registry/v1/digestcount/${repo}`))
})
