// Entries of SBOMs of images: each is compared or is a coverage gap, from the push to the answers of the API.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { readOsv } from '#sources/osv.ts'
import { envelopeOf, keysOf, pushAttestations, refer, statementAbout } from '../support/attest.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { type Descriptor, indexOf, type RegistryClient, startRegistry, type TestRegistry } from '../support/registry.ts'
import { pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let viewer: Client
let pusher: RegistryClient
let repo = ''
const name = 'acme/app'

const osv = (id: string, ecosystem: string, about: string, events: Json[], more: Json = {}) =>
  readOsv(
    JSON.stringify({
      ...{ id, modified: '2026-01-01T00:00:00Z' },
      affected: [{ package: { ecosystem, name: about }, ranges: [{ type: 'ECOSYSTEM', events }], ...more }],
    }),
  )
const from = (...ends: Json[]) => [{ introduced: '0' }, ...ends]

before(async () => {
  registry = await startRegistry()
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  viewer = await registry.as(registry.pusher.uid)
  pusher = await registry.registryAs(registry.pusher.uid)
  const { app } = registry
  await readSource(app, 'npm', [recordAbout('GHSA-lodash', 'npm', 'lodash', '4.17.22')])
  await readSource(app, 'PyPI', [
    recordAbout('PYSEC-flask', 'PyPI', 'flask', '2.0.1'),
    osv('PYSEC-last', 'PyPI', 'torch', from({ last_affected: '2.0.1' })),
    osv('PYSEC-fixed', 'PyPI', 'torch', from({ fixed: '2.0.1' })),
  ])
  await readSource(app, 'Go', [
    osv('GO-goutils', 'Go', 'github.com/Masterminds/goutils', from({ fixed: '1.1.1' })),
    osv('GO-jwt-5', 'Go', 'github.com/golang-jwt/jwt/v5', from({ fixed: '5.2.2' })),
    osv('GO-jwt', 'Go', 'github.com/golang-jwt/jwt', from()),
    osv('GO-std', 'Go', 'stdlib', from({ fixed: '1.21.1' })),
  ])
  await readSource(app, 'Maven', [
    osv(
      'GHSA-jdbc',
      'Maven:https://repository.example/maven2',
      'com.microsoft.sqlserver:mssql-jdbc',
      from({ fixed: '12.10.2.jre11' }),
    ),
  ])
  await readSource(app, 'Debian:12', [recordAbout('DSA-1', 'Debian:12', 'openssl', '3.0.12')])
  for (const [key, push] of Object.entries(pushes)) images[key] = await push()
  await runJob(app, readImages)
  await runJob(app, matchPackages)
})
after(() => registry[Symbol.asyncDispose]())

let count = 0
const newImage = () => pushLayers(pusher, name, [{ 'app/server': `binary ${count++}` }])
const cyclone = (...purls: string[]): Json => ({
  ...{ bomFormat: 'CycloneDX', specVersion: '1.6' },
  components: purls.map((purl) => ({ type: 'library', name: 'x', purl })),
})
const withSbom = async (...documents: (Json | string)[]): Promise<Descriptor> => {
  const image = await newImage()
  for (const document of documents) {
    const text = typeof document === 'string' ? document : JSON.stringify(document)
    await pushSbom(pusher, name, image, text, 'application/vnd.cyclonedx+json')
  }
  return image
}

const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json'
const cyclonePredicate = 'https://cyclonedx.org/bom'
const provenance = 'https://slsa.dev/provenance/v1'
const keys = keysOf.ecdsa!()
const signed = (digest: string, document = cyclone('pkg:npm/lodash@4.17.21'), type = cyclonePredicate) =>
  envelopeOf(statementAbout(digest, document, type), [keys])
const bundle = (envelope: Json, predicateType?: string) => ({
  ...{ type: bundleType, content: { mediaType: bundleType, verificationMaterial: {}, dsseEnvelope: envelope } },
  annotations: predicateType === undefined ? {} : { 'dev.sigstore.bundle.predicateType': predicateType },
})
const enveloped = (type: string, content: Json) => ({ type, content, annotations: {} })

const layouts: Record<string, (digest: string, envelope: Json) => Promise<unknown>> = {
  'a bundle of Sigstore': (digest, envelope) => refer(pusher, name, digest, bundle(envelope, cyclonePredicate)),
  'a bundle without annotations': (digest, envelope) => refer(pusher, name, digest, bundle(envelope)),
  'an envelope': (digest, envelope) =>
    refer(pusher, name, digest, enveloped('application/vnd.dsse.envelope.v1+json', envelope)),
  'a statement in an envelope': (digest, envelope) =>
    refer(pusher, name, digest, enveloped('application/vnd.in-toto+json', envelope)),
  'a tag of cosign': (digest, envelope) => pushAttestations(pusher, name, digest, [envelope], cyclonePredicate),
}

const flask = { type: 'library', name: 'flask', version: '2.0.0', purl: 'pkg:pypi/flask' }
const go = {
  'masterminds/goutils@v1.1.0': ['GO-goutils'],
  'Masterminds/goutils@v1.1.0': ['GO-goutils'],
  'masterminds/goutils@v1.1.1': [],
  'golang-jwt/jwt@v5.2.1#v5': ['GO-jwt-5'],
  'golang-jwt/jwt@v3.2.0': ['GO-jwt'],
}
const goItself = { 'std@1.21.0': ['GO-std'], 'stdlib@go1.21.0-X:boringcrypto': ['GO-std'], 'stdlib@go1.21.1': [] }
const modules: Record<string, string[]> = {
  ...Object.fromEntries(Object.entries(go).map(([purl, ids]) => [`pkg:golang/github.com/${purl}`, ids])),
  ...Object.fromEntries(Object.entries(goItself).map(([purl, ids]) => [`pkg:golang/${purl}`, ids])),
}

/** Images of the tests. All of them are read and compared before the first test. */
const images: Record<string, { digest: string }> = {}
const pushes: Record<string, () => Promise<{ digest: string }>> = {
  entries: () => {
    const document = cyclone('PKG:npm/lodash@4.17.21', 'pkg:generic/openssl@1.0.1')
    return withSbom({ ...document, metadata: { component: { type: 'application', components: [flask] } } })
  },
  'nothing comparable': () => withSbom(cyclone('pkg:generic/openssl@1.0.1'), '{"bomFormat":'),
  codename: () => withSbom(cyclone('pkg:deb/debian/openssl@3.0.11-1~deb12u1?distro=bookworm')),
  torch: () => pushLayers(pusher, name, [pythonPackage('torch', '2.0.1+cu118')]),
  maven: () => withSbom(cyclone('pkg:maven/com.microsoft.sqlserver/mssql-jdbc@12.10.1.jre11')),
  provenance: async () => {
    const image = await newImage()
    await refer(pusher, name, image.digest, bundle(signed(image.digest), cyclonePredicate))
    for (let i = 0; i < 11; i++) {
      const envelope = signed(image.digest, { builder: i }, provenance)
      await refer(pusher, name, image.digest, bundle(envelope, provenance))
    }
    return image
  },
  index: async () => {
    images.platform = await pushLayers(pusher, name, [pythonPackage('flask', '2.0.0')])
    const platform = { architecture: 'amd64', os: 'linux' }
    const index = await pusher.pushManifest(name, indexOf([{ ...(images.platform as Descriptor), platform }]))
    await refer(pusher, name, index.digest, bundle(signed(index.digest), cyclonePredicate))
    return index
  },
}
for (const purl of Object.keys(modules)) pushes[purl] = () => withSbom(cyclone(purl))
for (const [layout, push] of Object.entries(layouts)) {
  pushes[layout] = async () => {
    const [image, other] = [await newImage(), await newImage()]
    await push(image.digest, signed(image.digest))
    await push(other.digest, signed(image.digest))
    images[`not ${layout}`] = other
    return image
  }
}

const shown = async (key: string): Promise<[ids: string[], gaps: string[]]> => {
  const found: Json = ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${images[key]!.digest}/findings`))
  const ids = found.findings.map((one: Json) => one.records?.[0]?.id ?? one.record?.id ?? one.vulnerabilities[0])
  return [[...new Set<string>(ids)].sort(), found.gaps.map(({ reason, message }: Json) => `${reason} ${message}`)]
}
const generic = 'CONTENTS_INCOMPLETE UNSUPPORTED: an SBOM has 1 package of an unsupported type: generic'

test('compares each SBOM entry, or reports a coverage gap for the entry', async () => {
  assert.deepEqual(await shown('entries'), [['GHSA-lodash', 'PYSEC-flask'], [generic]])
})

test('an image is not clean if its SBOM is invalid or names nothing that can be compared', async () => {
  const damaged = 'CONTENTS_INCOMPLETE DAMAGED: an SBOM was not read: the SBOM is not valid JSON'
  assert.deepEqual(await shown('nothing comparable'), [[], [damaged, generic]])
})

for (const [purl, ids] of Object.entries(modules)) {
  test(`${purl} matches ${ids.length === 0 ? 'no record' : ids.join()}`, async () => {
    assert.deepEqual(await shown(purl), [ids, []])
  })
}

test('finds a Go module by its package URL in either case', async () => {
  const purl = encodeURIComponent('pkg:golang/github.com/Masterminds/goutils')
  assert.equal(ok(await viewer.get(`/registry/v2/imagesWithPackage?purl=${purl}`)).images.length, 3)
})

test('a release codename in a package URL selects the records of the release', async () => {
  assert.deepEqual(await shown('codename'), [['DSA-1'], []])
})

test('compares a local Python version as its public version, also with last-affected versions and queried ranges', async () => {
  assert.deepEqual(await shown('torch'), [['PYSEC-last'], []])
  const having = async (range: string): Promise<number> => {
    const query = `name=torch&versionRange=${encodeURIComponent(range)}`
    return ok(await viewer.get(`/registry/v2/imagesWithPackage?${query}`)).images.length
  }
  const counts = [await having('<=2.0.1'), await having('=2.0.1'), await having('>2.0.1'), await having('<2.0.1')]
  assert.deepEqual(counts, [1, 1, 0, 0])
})

test('records of a named Maven repository apply to Maven', async () => {
  assert.deepEqual(await shown('maven'), [['GHSA-jdbc'], []])
})

for (const layout of Object.keys(layouts)) {
  test(`reads an SBOM from ${layout}, and only for the image that it describes`, async () => {
    assert.deepEqual(await shown(layout), [['GHSA-lodash'], []])
    assert.deepEqual((await shown(`not ${layout}`))[0], [])
  })
}

test('provenance pushed later does not hide an SBOM', async () => {
  assert.deepEqual(await shown('provenance'), [['GHSA-lodash'], []])
})

test('an SBOM about an index applies to the index', async () => {
  assert.deepEqual(await shown('index'), [['GHSA-lodash', 'PYSEC-flask'], []])
  assert.deepEqual((await shown('platform'))[0], ['PYSEC-flask'])
})
