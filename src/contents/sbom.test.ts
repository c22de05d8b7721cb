import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from '../../test/support/fixtures.ts'
import { packageOf } from './package-url.ts'
import { readSbom } from './sbom.ts'

const sbom = (name: string) => readSbom(fixture(`contents/sboms/${name}`))
const ofJson = (document: object) => readSbom(Buffer.from(JSON.stringify(document)))
const musl = { kind: 'apk', name: 'musl', version: '1.2.3-r0', origin: 'musl', originVersion: '1.2.3-r0', arch: '' }

test('SPDX 2 gives the packages of the distribution, with their origins', () => {
  const { packages } = sbom('alpine-3.10.syft.spdx.json')
  assert.deepEqual(
    packages.map(({ name, version, origin, arch }) => [name, version, origin, arch]),
    [
      ['busybox', '1.30.1-r5', 'busybox', 'x86_64'],
      ['libssl1.1', '1.1.1k-r0', 'libssl1.1', 'x86_64'],
      ['ssl_client', '1.30.1-r5', 'busybox', 'x86_64'],
    ],
  )
  assert.deepEqual(sbom('bom.spdx.json'), { packages: [musl], distribution: { id: 'alpine', version: '3.16.0' } })
})

test('CycloneDX gives the same, however deep its components nest', () => {
  assert.deepEqual(sbom('bom-alpine-app.cdx.json'), {
    packages: [musl],
    distribution: { id: 'alpine', version: '3.16.0' },
  })
  let component: object = { purl: 'pkg:apk/alpine/musl@1.2.3-r0' }
  for (let depth = 0; depth < 1000; depth++) component = { components: [component] }
  assert.deepEqual(ofJson({ bomFormat: 'CycloneDX', specVersion: '1.4', components: [component] }).packages, [musl])
})

test('a large SBOM of a Debian image names source packages and their versions', () => {
  const { packages, distribution } = sbom('fluentd-multiple-lockfiles.cdx.json.gz')
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

test('every version of the formats is recognised, also where no package is of a distribution', () => {
  for (const version of ['1.2', '1.3', '1.4', '1.5', '1.6', '1.7']) {
    assert.deepEqual(sbom(`identify-cyclonedx-${version}.json`).packages, [], version)
  }
  for (const version of ['2.2', '2.3', '3.0'])
    assert.deepEqual(sbom(`identify-spdx-${version}.json`).packages, [], version)
  for (const name of [
    'kbom.cdx.json',
    'nested-packages.cdx.json',
    'apko-index.spdx.json',
    'alpine-3.10.vendor.spdx.json',
  ]) {
    assert.deepEqual(sbom(name).packages, [], name)
  }
})

test('SPDX 3 names packages by their package URL or by an identifier', () => {
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

test('what is no SBOM is refused with the reason', () => {
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

test('members of the wrong type are passed over', () => {
  for (const wrong of [1, 'x', null, [], {}, [null], [1], [{ purl: 1 }], [{ components: 'x', properties: 7 }]]) {
    assert.deepEqual(ofJson({ bomFormat: 'CycloneDX', specVersion: '1.5', components: wrong }).packages, [])
    assert.deepEqual(ofJson({ spdxVersion: 'SPDX-2.3', packages: wrong }).packages, [])
    assert.deepEqual(ofJson({ '@context': 'https://spdx.org/rdf/3.0', '@graph': wrong }).packages, [])
  }
})

test('a package URL of a distribution is a package', () => {
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
    'pkg:npm/a@1',
    'pkg:apk/a/@1',
  ]) {
    assert.equal(packageOf(url), undefined, url)
  }
})
