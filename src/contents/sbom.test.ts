import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from '../../test/support/fixtures.ts'
import { joinContents } from './join.ts'
import { packageOf } from './package-url.ts'
import { isOfDistribution } from './packages.ts'
import { readSbom } from './sbom.ts'

const sbom = (name: string) => readSbom(fixture(`contents/sboms/${name}`))!
const ofJson = (document: object) => readSbom(Buffer.from(JSON.stringify(document)))!
const musl = { kind: 'apk', name: 'musl', version: '1.2.3-r0', origin: 'musl', originVersion: '1.2.3-r0', arch: '' }

const ofDistribution = (name: string) => {
  const { packages, distribution } = sbom(name)
  return { packages: packages.filter(isOfDistribution), distribution }
}
const counts = (name: string) => {
  const found: Record<string, number> = {}
  for (const { kind } of sbom(name).packages) found[kind] = (found[kind] ?? 0) + 1
  return found
}

test('reads distribution packages with their origins from SPDX 2', () => {
  const { packages } = sbom('alpine-3.10.syft.spdx.json')
  assert.deepEqual(
    packages.map(({ name, version, origin, arch }) => [name, version, origin, arch]),
    [
      ['busybox', '1.30.1-r5', 'busybox', 'x86_64'],
      ['libssl1.1', '1.1.1k-r0', 'libssl1.1', 'x86_64'],
      ['ssl_client', '1.30.1-r5', 'busybox', 'x86_64'],
    ],
  )
  assert.deepEqual(ofDistribution('bom.spdx.json'), {
    packages: [musl],
    distribution: { id: 'alpine', version: '3.16.0' },
  })
})

test('reads the same from CycloneDX, with components nested to any depth', () => {
  assert.deepEqual(ofDistribution('bom-alpine-app.cdx.json'), {
    packages: [musl],
    distribution: { id: 'alpine', version: '3.16.0' },
  })
  let component: object = { purl: 'pkg:apk/alpine/musl@1.2.3-r0' }
  for (let depth = 0; depth < 1000; depth++) component = { components: [component] }
  assert.deepEqual(ofJson({ bomFormat: 'CycloneDX', specVersion: '1.4', components: [component] }).packages, [musl])
})

test('reads source packages and their versions from a large SBOM of a Debian image', () => {
  const { packages, distribution } = ofDistribution('fluentd-multiple-lockfiles.cdx.json.gz')
  assert.deepEqual([packages.length, distribution.id, distribution.version], [105, 'debian', '10.2'])
  const shown = packages.filter(({ name }) => ['libpam-runtime', 'libgcc1', 'zlib1g'].includes(name))
  assert.deepEqual(
    shown.map(({ name, version, origin, originVersion }) => [name, version, origin, originVersion]),
    [
      ['libgcc1', '1:8.3.0-6', 'gcc-8', '8.3.0-6'],
      ['libpam-runtime', '1.3.1-5', 'pam', '1.3.1-5'],
      ['zlib1g', '1:1.2.11.dfsg-1', 'zlib', '1:1.2.11.dfsg-1'],
    ],
  )
})

test('converts language packages to their names in advisories', () => {
  const named = (name: string) => sbom(name).packages.filter((one) => !isOfDistribution(one))
  assert.deepEqual(
    named('bom.spdx.json').map(({ kind, name, version }) => [kind, name, version]),
    [
      ['golang', 'github.com/package-url/packageurl-go', 'v0.1.1-0.20220203205134-d70459300c8a'],
      ['maven', 'org.codehaus.mojo:child-project', '1.0'],
      ['npm', 'bootstrap', '5.0.2'],
    ],
  )
  const expected = JSON.parse(fixture('contents/sboms/counts.json').toString()) as Record<string, object>
  for (const [name, kinds] of Object.entries(expected)) assert.deepEqual(counts(name), kinds, name)
})

test('reports a coverage gap for packages of unsupported kinds', () => {
  const components = ['pkg:nuget/curl@7', 'pkg:nuget/zlib@1', 'pkg:generic/x@1', 'pkg:nuget/none'].map((purl) => ({
    purl,
  }))
  const { packages, gaps } = ofJson({ bomFormat: 'CycloneDX', specVersion: '1.4', components })
  assert.deepEqual(packages, [])
  assert.deepEqual(gaps, [
    { path: '', reason: 'UNSUPPORTED', message: 'an SBOM has 3 packages of an unsupported type: nuget' },
    { path: '', reason: 'UNSUPPORTED', message: 'an SBOM has 1 package of an unsupported type: generic' },
  ])
})

test('reports a coverage gap for a package without a package URL, but not for other entries', () => {
  const gap = (count: number) => [
    {
      path: '',
      reason: 'UNIDENTIFIED',
      message: `an SBOM has ${count === 1 ? '1 package' : `${count} packages`} without a package URL`,
    },
  ]
  const [library, framework] = ['library', 'framework'].map((type) => ({ type, name: 'left', version: '1' }))
  const others = ['file', 'container', 'application', 'operating-system'].map((type) => ({ type, name: 'x' }))
  const inside = { type: 'application', name: 'lock', components: [library] }
  const cyclone = { bomFormat: 'CycloneDX', specVersion: '1.6' }
  assert.deepEqual(ofJson({ ...cyclone, components: [framework, ...others, inside] }).gaps, gap(2))
  assert.deepEqual(ofJson({ ...cyclone, components: others }).gaps, [])
  const packages = [
    { SPDXID: 'SPDXRef-root', name: 'image' },
    { SPDXID: 'SPDXRef-Application-1', name: 'lock' },
    { SPDXID: 'SPDXRef-a', name: 'a', primaryPackagePurpose: 'CONTAINER' },
    { SPDXID: 'SPDXRef-b', name: 'b', primaryPackagePurpose: 'LIBRARY' },
    { SPDXID: 'SPDXRef-c', name: 'c', externalRefs: [{ referenceType: 'cpe23Type', referenceLocator: 'cpe:2.3:a' }] },
  ]
  const spdx = { spdxVersion: 'SPDX-2.3', packages }
  assert.deepEqual(ofJson({ ...spdx, documentDescribes: ['SPDXRef-root'] }).gaps, gap(2))
  const relationships = [{ relationshipType: 'DESCRIBES', relatedSpdxElement: 'SPDXRef-root' }]
  assert.deepEqual(ofJson({ ...spdx, relationships }).gaps, gap(2))
  const graph = [
    { type: 'SpdxDocument', rootElement: ['urn:root'] },
    { type: 'software_Package', spdxId: 'urn:root', name: 'image' },
    { type: 'software_Package', spdxId: 'urn:a', name: 'a', software_primaryPurpose: 'library' },
    { type: 'software_Package', spdxId: 'urn:b', name: 'b', software_primaryPurpose: 'operatingSystem' },
  ]
  assert.deepEqual(
    ofJson({ '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld', '@graph': graph }).gaps,
    gap(1),
  )
})

test('treats an SPDX element as a package unless its purpose or id excludes this', () => {
  const named = { name: 'openssl', versionInfo: '1.0.1' }
  const gapsOf = (entry: object) => ofJson({ spdxVersion: 'SPDX-2.3', packages: [{ ...named, ...entry }] }).gaps.length
  for (const purpose of ['ARCHIVE', 'SOURCE', 'OTHER', 'FIRMWARE', 'INSTALL', 'NEW']) {
    assert.equal(gapsOf({ primaryPackagePurpose: purpose }), 1, purpose)
  }
  for (const purpose of ['CONTAINER', 'FILE', 'DEVICE', 'OPERATING-SYSTEM']) {
    assert.equal(gapsOf({ primaryPackagePurpose: purpose }), 0, purpose)
  }
  for (const id of ['Application-nginx', 'Repository-foo']) {
    assert.equal(gapsOf({ SPDXID: `SPDXRef-${id}` }), 1, id)
    assert.equal(gapsOf({ SPDXID: `SPDXRef-${id}`, versionInfo: '' }), 0, id)
  }
  assert.equal(gapsOf({ SPDXID: 'SPDXRef-DocumentRoot-Image' }), 0)
  const context = 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld'
  const gapsOf3 = (purpose: string) => {
    const entry = {
      type: 'software_Package',
      name: 'a',
      software_packageVersion: '1',
      software_primaryPurpose: purpose,
    }
    return ofJson({ '@context': context, '@graph': [entry] }).gaps.length
  }
  for (const purpose of ['executable', 'platform', 'archive', 'source', 'firmware', 'patch', 'deviceDriver']) {
    assert.equal(gapsOf3(purpose), 1, purpose)
  }
  for (const purpose of ['bom', 'container', 'data', 'device', 'file', 'operatingSystem']) {
    assert.equal(gapsOf3(purpose), 0, purpose)
  }
})

test('reads the distribution from the packages if the document has no operating system', () => {
  const components = [{ purl: 'pkg:apk/alpine/musl@1.2.3-r0?distro=alpine-3.16.2' }]
  const { distribution } = ofJson({ bomFormat: 'CycloneDX', specVersion: '1.4', components })
  assert.deepEqual(distribution, { id: 'alpine', version: '3.16.2' })
})

test('reads the SBOM in an in-toto statement: plain, in an envelope and in a Sigstore bundle', () => {
  const predicate = JSON.parse(fixture('contents/sboms/bom.spdx.json').toString()) as object
  const statement = {
    _type: 'https://in-toto.io/Statement/v0.1',
    predicateType: 'https://spdx.dev/Document',
    subject: [{ name: 'pkg:docker/x', digest: { sha256: 'a'.repeat(64) } }],
    predicate,
  }
  const payloadOf = (document: object) => Buffer.from(JSON.stringify(document)).toString('base64')
  const payloadType = 'application/vnd.in-toto+json'
  const envelopeOf = (document: object) => ({ payloadType, payload: payloadOf(document), signatures: [] })
  const bundleOf = (dsseEnvelope: object, version = '.v0.3+json') => ({
    ...{ mediaType: `application/vnd.dev.sigstore.bundle${version}`, verificationMaterial: {}, dsseEnvelope },
  })
  const plain = { ...sbom('bom.spdx.json'), subjects: [`sha256:${'a'.repeat(64)}`] }
  const sealed = { ...plain, sealed: true }
  assert.deepEqual(ofJson(statement), { ...plain, sealed: false })
  assert.deepEqual(ofJson(envelopeOf(statement)), sealed)
  assert.deepEqual(ofJson(bundleOf(envelopeOf(statement))), sealed)
  assert.deepEqual(ofJson(bundleOf(envelopeOf(statement), '+json;version=0.2')), sealed)
  const asText = { ...statement, predicate: { Data: JSON.stringify(predicate), Timestamp: '2026-01-01T00:00:00Z' } }
  assert.deepEqual(ofJson(envelopeOf(asText)), sealed)
  assert.deepEqual(ofJson(envelopeOf({ ...statement, predicate: JSON.stringify(predicate) })), sealed)

  const other = { ...statement, predicateType: 'https://slsa.dev/provenance/v1', predicate: { builder: 1 } }
  const signature = { mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json', messageSignature: {} }
  const otherPayload = { payloadType: 'application/vnd.dev.cosign.simplesigning.v1+json', payload: payloadOf({}) }
  for (const one of [other, envelopeOf(other), bundleOf(envelopeOf(other)), signature, otherPayload, envelopeOf({})]) {
    assert.equal(ofJson(one), undefined)
  }
  assert.throws(() => ofJson({ payloadType, payload: '%%' }), { name: 'Unreadable', reason: 'DAMAGED' })
  const unsupported = { name: 'Unreadable', reason: 'UNSUPPORTED' }
  assert.throws(
    () => ofJson({ ...statement, predicateType: 'https://syft.dev/bom', predicate: { artifacts: [] } }),
    unsupported,
  )
})

test('combines the packages of several sources, and hides none', () => {
  const of = (...packages: object[]) =>
    ({ packages, distribution: { id: '', version: '' }, hasDatabase: false, gaps: [] }) as never
  const [layer, same, newer] = [
    { ...musl, origin: 'musl-src', arch: 'x86_64' },
    musl,
    { ...musl, version: '1.2.4-r0', originVersion: '1.2.4-r0' },
  ]
  const joined = joinContents([
    of(layer),
    of(same, newer),
    { ...(of() as object), distribution: { id: 'x', version: '1' }, hasDatabase: true } as never,
  ])
  assert.deepEqual(joined, {
    packages: [layer, newer],
    distribution: { id: 'x', version: '1' },
    hasDatabase: true,
    gaps: [],
  })
  const many = Array.from({ length: 20_001 }, (_, i) => ({ ...musl, name: `p${i}` }))
  const bounded = joinContents([of(layer), of(...many)])
  assert.deepEqual([bounded.packages.length, bounded.gaps.map(({ reason }) => reason)], [20_000, ['LIMIT_EXCEEDED']])
})

test('recognizes each version of the formats, even without distribution packages', () => {
  for (const version of ['1.2', '1.3', '1.4', '1.5', '1.6', '1.7']) {
    assert.deepEqual(ofDistribution(`identify-cyclonedx-${version}.json`).packages, [], version)
  }
  for (const version of ['2.2', '2.3', '3.0'])
    assert.deepEqual(ofDistribution(`identify-spdx-${version}.json`).packages, [], version)
  for (const name of [
    'kbom.cdx.json',
    'nested-packages.cdx.json',
    'apko-index.spdx.json',
    'alpine-3.10.vendor.spdx.json',
  ]) {
    assert.deepEqual(ofDistribution(name).packages, [], name)
  }
})

test('identifies SPDX 3 packages by package URL or by an identifier', () => {
  const purl = 'pkg:apk/alpine/musl@1.2.3-r0'
  const graph = [
    { type: 'software_Package', software_packageUrl: purl },
    {
      type: 'software_Package',
      externalIdentifier: [{ externalIdentifierType: 'packageUrl', identifier: `${purl}-r1` }],
    },
    { type: 'software_File', software_packageUrl: 'pkg:apk/alpine/other@1' },
  ]
  const context = 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld'
  const { packages } = ofJson({ '@context': context, '@graph': graph })
  assert.deepEqual(
    packages.map(({ version }) => version),
    ['1.2.3-r0', '1.2.3-r0-r1'],
  )
})

test('refuses a document that is not an SBOM, and names the reason', () => {
  const unsupported = { name: 'Unreadable', reason: 'UNSUPPORTED' }
  for (const document of [
    {},
    [],
    null,
    1,
    { bomFormat: 'CycloneDX', specVersion: '2.0' },
    { spdxVersion: 'SPDX-2.1' },
  ]) {
    assert.throws(() => ofJson(document as object), unsupported)
  }
  for (const text of ['', '{', 'not json', '{"bomFormat":"CycloneDX"', '\xff']) {
    assert.throws(() => readSbom(Buffer.from(text, 'latin1')), { name: 'Unreadable', reason: 'DAMAGED' })
  }
  const values = Buffer.from(`[${'[],'.repeat(1_000_001)}0]`)
  assert.throws(() => readSbom(values), { name: 'Unreadable', reason: 'LIMIT_EXCEEDED' })
})

test('ignores members of the wrong type', () => {
  for (const wrong of [1, 'x', null, [], {}, [null], [1], [{ purl: 1 }], [{ components: 'x', properties: 7 }]]) {
    assert.deepEqual(ofJson({ bomFormat: 'CycloneDX', specVersion: '1.5', components: wrong }).packages, [])
    assert.deepEqual(ofJson({ spdxVersion: 'SPDX-2.3', packages: wrong }).packages, [])
    assert.deepEqual(ofJson({ '@context': 'https://spdx.org/rdf/3.0', '@graph': wrong }).packages, [])
  }
})

test('only a distribution package URL with a version is a distribution package', () => {
  const shown = (url: string) => {
    const { kind, name, version, origin, originVersion, arch } = packageOf(url)!
    return [kind, name, version, origin, originVersion, arch].join(' ')
  }
  assert.equal(shown('pkg:apk/alpine/a@1.0-r0?arch=x86_64'), 'apk a 1.0-r0 a 1.0-r0 x86_64')
  assert.equal(shown('pkg:APK/a@1'), 'apk a 1 a 1 ')
  assert.equal(shown('pkg://deb/debian/libc%2B%2B@2.1?upstream=c%2B%2B%401%3A2'), 'deb libc++ 2.1 c++ 1:2 ')
  assert.equal(shown('pkg:deb/debian/g++@1%2Bb1?upstream=g++@2+3'), 'deb g++ 1+b1 g++ 2+3 ')
  assert.equal(shown('pkg:deb/debian/a@1.0?epoch=2&arch=all'), 'deb a 2:1.0 a 2:1.0 all')
  assert.equal(shown('pkg:deb/debian/a@1.0?epoch=0#sub'), 'deb a 1.0 a 1.0 ')
  assert.equal(shown('pkg:apk/wolfi/a-doc@1?origin=a'), 'apk a-doc 1 a 1 ')
  for (const url of [
    '',
    'x',
    'pkg:',
    'pkg:apk/',
    'pkg:apk/a',
    'pkg:apk/@1',
    'pkg:apk/a@',
    'pkg:rpm/a',
    'pkg:apk/a/@1',
  ]) {
    assert.equal(packageOf(url), undefined, url)
  }
})
