// Inputs that other scanners read or compared wrongly, according to reports of their users.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareInstalled, type Scheme } from '#versions/order.ts'
import { inRanges, type RangeEvent } from '#versions/ranges.ts'
import { readSbom } from './sbom.ts'

type Json = Record<string, unknown>

const ofJson = (document: Json) => readSbom(Buffer.from(JSON.stringify(document)))!
const cyclone = (...components: Json[]): Json => ({ bomFormat: 'CycloneDX', specVersion: '1.5', components })
const spdx = (...packages: Json[]): Json => ({ spdxVersion: 'SPDX-2.3', packages })
const lodash = { type: 'library', name: 'lodash', version: '4.17.16', purl: 'pkg:npm/lodash@4.17.16' }
const found = ['npm lodash 4.17.16']
const locator = 'pkg:npm/lodash@4.17.16'
const refOf = (referenceCategory: string) => [{ referenceCategory, referenceType: 'purl', referenceLocator: locator }]

for (const [what, document, packages, gaps] of [
  ['no main component', { ...cyclone(lodash), metadata: {} }, found, 0],
  [
    'a main component that is a file',
    { ...cyclone(lodash), metadata: { component: { type: 'file', name: 'x' } } },
    found,
    0,
  ],
  ['no list of components', { ...cyclone(), components: null }, [], 0],
  ['a component with a package URL only', cyclone({ purl: lodash.purl }), found, 0],
  ['a version beside the package URL only', cyclone({ ...lodash, purl: 'pkg:npm/lodash' }), found, 0],
  ['a package outside of the graph', { ...cyclone(lodash), dependencies: [{ ref: 'x', dependsOn: [] }] }, found, 0],
  [
    'a library of no package manager',
    cyclone(lodash, { ...lodash, purl: 'pkg:generic/openssl@1.1.10g?checksum=x' }),
    found,
    1,
  ],
  ['a category with a hyphen', spdx({ SPDXID: 'SPDXRef-a', externalRefs: refOf('PACKAGE-MANAGER') }), found, 0],
  ['a category with an underscore', spdx({ SPDXID: 'SPDXRef-a', externalRefs: refOf('PACKAGE_MANAGER') }), found, 0],
  [
    'references to other documents',
    { ...spdx({ externalRefs: refOf('OTHER') }), externalDocumentRefs: [{}] },
    found,
    0,
  ],
  ['a package with a name and a version only', spdx({ SPDXID: 'SPDXRef-a', name: 'a', versionInfo: '1' }), [], 1],
  [
    'a program that only has a CPE',
    spdx({
      name: 'busybox',
      externalRefs: [{ referenceType: 'cpe23Type', referenceLocator: 'cpe:2.3:a:busybox:busybox:1.35.0' }],
    }),
    [],
    1,
  ],
] as [string, Json, string[], number][]) {
  test(`an SBOM with ${what} has ${packages.length} packages and ${gaps} coverage gaps`, () => {
    const contents = ofJson(document)
    assert.deepEqual(
      contents.packages.map(({ kind, name, version }) => `${kind} ${name} ${version}`),
      packages,
    )
    assert.equal(contents.gaps.length, gaps)
  })
}

test('refuses an SBOM in tag-value format, and reports a coverage gap', () => {
  assert.throws(() => readSbom(Buffer.from('SPDXVersion: SPDX-2.3\n')), { name: 'Unreadable', reason: 'DAMAGED' })
})

test('an epoch qualifier and the distribution release are part of the version', () => {
  const purl = 'pkg:deb/debian/vim@9.0.1378-2?arch=amd64&epoch=2&distro=debian-12'
  const { packages, distribution } = ofJson(cyclone({ type: 'library', name: 'vim', purl }))
  assert.deepEqual([packages[0]?.version, distribution], ['2:9.0.1378-2', { id: 'debian', version: '12' }])
})

for (const [scheme, installed, events, covered] of [
  ['apk', '1.36.1-r18', [{ fixed: '1.36.1-r2' }], 'no'],
  ['deb', '2:9.0.0-1', [{ fixed: '8.3.2' }], 'no'],
  ['pep440', '22.10.0', [{ fixed: '22.10.0rc1' }], 'no'],
  ['pep440', '2022.12.7', [{ fixed: '2022.12.07' }], 'no'],
  ['pep440', '6.4+cgr.1', [{ fixed: '6.4.1' }], 'yes'],
  ['pep440', '17.1.3.dev3', [{ fixed: '17.1.3' }], 'yes'],
  ['semver', 'v0.0.0-20220314234659-1baeb1ce4c0b', [{ fixed: '0.0.0-20220315000000-aaaaaaaaaaaa' }], 'yes'],
  ['semver', 'v0.0.0-20220316234659-1baeb1ce4c0b', [{ fixed: '0.0.0-20220315000000-aaaaaaaaaaaa' }], 'no'],
  ['semver', 'v24.0.7+incompatible', [{ fixed: '24.0.8' }], 'yes'],
  ['semver', 'V1500.2.0', [{ lastAffected: '1500.2.0' }], 'yes'],
  ['semver', '16.2.1', [{ limit: '15.5.1' }], 'no'],
  ['semver', '1.123.70', [{ fixed: '>= 1.123.64' }], 'unknown'],
  ['semver', '(devel)', [{ fixed: '1.0.0' }], 'unknown'],
  ['maven', '31.1-jre', [{ lastAffected: '29.0' }], 'no'],
] as [Scheme, string, RangeEvent[], string][]) {
  test(`${scheme}: ${installed} up to ${JSON.stringify(events)}: ${covered}`, () => {
    const order = (one: string, other: string) => compareInstalled(scheme, one, other)
    const range = { type: 'ECOSYSTEM' as const, events: [{ introduced: '0' }, ...events] }
    assert.equal(inRanges(installed, [range], order), covered)
  })
}
