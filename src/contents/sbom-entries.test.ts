// Tests that no entry of an SBOM is lost: each entry becomes a package or counts in a coverage gap, unless it is not a package.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fixture } from '../../test/support/fixtures.ts'
import { readSbom } from './sbom.ts'

type Json = Record<string, unknown>

const folder = new URL('../../test/data/contents/sboms/', import.meta.url)
const samples = readdirSync(folder).filter((name) => name !== 'counts.json')
const ofJson = (document: Json) => readSbom(Buffer.from(JSON.stringify(document)))!
const shown = (document: Json) => {
  const { packages, gaps } = ofJson(document)
  const keys = packages.map((one) => [one.kind, one.name, one.version, one.arch, one.origin].join(' '))
  return {
    packages: keys,
    gaps: gaps.reduce((sum, { message }) => sum + Number(/ has (\d+) packages? /.exec(message)?.[1]), 0),
  }
}

const listOf = (value: unknown) => (Array.isArray(value) ? (value as Json[]) : [])

/** One SBOM for each entry, which contains only this entry, together with the entry. */
function split(document: Json): { alone: Json; entry: Json; isRoot: boolean }[] {
  if (document.bomFormat === 'CycloneDX') {
    const main = (document.metadata as Json | undefined)?.component as Json | undefined
    const all: Json[] = [...listOf(document.components), ...(main ? [main] : [])]
    for (const one of all) all.push(...listOf(one.components))
    return all.map((one) => {
      const { components: _, ...entry } = one
      const alone = {
        ...document,
        metadata: {},
        components: [],
        ...(one === main && { metadata: { component: entry } }),
      }
      return { alone: one === main ? alone : { ...alone, components: [entry] }, entry, isRoot: one === main }
    })
  }
  if ('spdxVersion' in document) {
    const relationships = listOf(document.relationships).filter((one) => one.relationshipType === 'DESCRIBES')
    const roots = [...listOf(document.documentDescribes), ...relationships.map((one) => one.relatedSpdxElement)]
    return listOf(document.packages).map((entry) => {
      return { alone: { ...document, packages: [entry] }, entry, isRoot: roots.includes(entry.SPDXID as never) }
    })
  }
  const graph = listOf(document['@graph'])
  return graph.flatMap((entry) => {
    if (entry.type !== 'software_Package') return []
    const isRoot = graph.some(({ rootElement }) => [rootElement].flat().includes(entry.spdxId))
    const others = graph.filter(({ type }) => type !== 'software_Package')
    return [{ alone: { ...document, '@graph': [...others, entry] }, entry, isRoot }]
  })
}

/** True for entries of the samples that are not packages: images, files, lock files that list packages, and operating systems. */
function isNoPackage(entry: Json, isRoot: boolean): boolean {
  const purls = [...JSON.stringify(entry).matchAll(/"pkg:([a-z0-9]+)\//g)].map(([, type]) => type!)
  if (purls.length > 0) return purls.every((type) => type === 'oci')
  const id = String(entry.SPDXID ?? '')
  const type = String(entry.type ?? entry.primaryPackagePurpose).toLowerCase()
  const isList = ['application', 'null', 'undefined'].includes(type) && !entry.version && !entry.versionInfo
  return isRoot || isList || ['container', 'file', 'operating-system'].includes(type) || id.includes('OperatingSystem')
}

for (const name of samples) {
  test(`${name}: each entry becomes a package or a coverage gap`, () => {
    const document = JSON.parse(fixture(`contents/sboms/${name}`).toString()) as Json
    const entries = split(document)
    assert.ok(entries.length > 0)
    const packages = new Set<string>()
    let gaps = 0
    // Several elements in the field `documentDescribes` are packages, but a single one is the image.
    const roots = entries.filter(({ isRoot }) => isRoot).length
    for (const { alone, entry, isRoot } of entries) {
      const { packages: found, gaps: missed } = shown(alone)
      for (const one of found) packages.add(one)
      const isCounted = found.length + missed > 0
      const isOneOfSeveral = isRoot && roots > 1
      assert.equal(isCounted, !isNoPackage(entry, isRoot), JSON.stringify(entry).slice(0, 500))
      gaps += missed + (isOneOfSeveral && !isCounted ? 1 : 0)
    }
    const whole = shown(document)
    assert.deepEqual(new Set(whole.packages), packages)
    assert.equal(whole.gaps, gaps)
  })
}

const cyclone = (...components: Json[]): Json => ({ bomFormat: 'CycloneDX', specVersion: '1.6', components })
const lodash = { type: 'library', name: 'lodash', version: '4.17.21', purl: 'pkg:npm/lodash@4.17.21' }
const flask = { type: 'library', name: 'flask', version: '2.0.0', purl: 'pkg:pypi/flask@2.0.0' }
const purlRef = (referenceLocator: string, referenceType = 'purl') => ({ referenceType, referenceLocator })
const spdx = (...externalRefs: Json[]): Json => ({
  spdxVersion: 'SPDX-2.3',
  packages: [{ SPDXID: 'SPDXRef-app', name: 'app', versionInfo: '1.0', externalRefs }],
})
const both = ['npm lodash 4.17.21', 'pypi flask 2.0.0']

const cases: [name: string, document: Json, packages: string[], gaps: number][] = [
  ['a version beside a purl without one', cyclone(lodash, { ...flask, purl: 'pkg:pypi/flask' }), both, 0],
  ['a scheme in capitals', cyclone(lodash, { ...flask, purl: 'PKG:pypi/flask@2.0.0' }), both, 0],
  ['a type in capitals and blanks around', cyclone(lodash, { ...flask, purl: ' pkg:PyPI/flask@2.0.0 ' }), both, 0],
  [
    'a type that no source covers',
    cyclone(lodash, { name: 'openssl', purl: 'pkg:generic/openssl@1.0.1' }),
    [both[0]!],
    1,
  ],
  ['a type with a digit and a dot', cyclone(lodash, { name: 'x', purl: 'pkg:my-2.type/x@1' }), [both[0]!], 1],
  ['a purl of a Git hoster', cyclone(lodash, { name: 'x', purl: 'pkg:github/acme/x@1.0.0' }), [both[0]!], 1],
  ['a purl without any version', cyclone(lodash, { name: 'flask', purl: 'pkg:pypi/flask' }), [both[0]!], 1],
  ['a purl without a name', cyclone(lodash, { type: 'library', name: 'x', purl: 'pkg:pypi/' }), [both[0]!], 1],
  ['something else as a purl', cyclone(lodash, { type: 'file', name: 'x', purl: 'flask==2.0.0' }), [both[0]!], 1],
  [
    'an application with a CPE and no purl',
    cyclone(lodash, { type: 'application', name: 'nginx', cpe: 'cpe:2.3:a:f5:nginx:1.20.0:*:*:*:*:*:*:*' }),
    [both[0]!],
    1,
  ],
  ['an application with a version', cyclone(lodash, { type: 'application', name: 'x', version: '1' }), [both[0]!], 1],
  ['a firmware', cyclone(lodash, { type: 'firmware', name: 'x', version: '1' }), [both[0]!], 1],
  ['the main component', { ...cyclone(lodash), metadata: { component: flask } }, both, 0],
  [
    'a component nested below the main one',
    { ...cyclone(lodash), metadata: { component: { type: 'application', name: 'app', components: [flask] } } },
    both,
    0,
  ],
  ['two purls of one package', spdx(purlRef('pkg:npm/lodash@4.17.21'), purlRef('pkg:pypi/flask@2.0.0')), both, 0],
  ['a generic purl first', spdx(purlRef('pkg:generic/app@1.0'), purlRef('pkg:pypi/flask@2.0.0')), [both[1]!], 1],
  ['a type as a URL', spdx(purlRef('pkg:pypi/flask@2.0.0', 'http://spdx.org/rdf/references/purl')), [both[1]!], 0],
  ['a type in capitals', spdx(purlRef('pkg:pypi/flask@2.0.0', 'PURL')), [both[1]!], 0],
  ['a type of another name', spdx(purlRef('pkg:pypi/flask@2.0.0', 'package-url')), [both[1]!], 0],
  ['no type at all', spdx(purlRef('pkg:pypi/flask@2.0.0', '')), [both[1]!], 0],
  [
    'the purl of SPDX 3 twice, in a context with a second part',
    {
      '@context': ['https://spdx.org/rdf/3.0.1/spdx-context.jsonld', {}],
      '@graph': [
        {
          type: 'software_Package',
          ...{ name: 'flask', software_packageVersion: '2.0.0', software_packageUrl: 'pkg:pypi/flask' },
          externalIdentifier: [{ externalIdentifierType: 'packageUrl', identifier: 'pkg:pypi/flask' }],
        },
        { type: 'ai_AIPackage', name: 'model', software_packageUrl: 'pkg:huggingface/acme/model@1' },
      ],
    },
    [both[1]!],
    1,
  ],
  ['texts, null and empty objects as components', cyclone(lodash, null as never, 'flask' as never, {}), [both[0]!], 1],
  ['a version without a name', cyclone(lodash, { version: '2.0.0' }), [both[0]!], 1],
  ['a single component without a list', { ...cyclone(), components: flask }, [both[1]!], 0],
  ['a text instead of the list', { ...cyclone(), components: 'flask' }, [], 1],
  ['null as a list', { ...cyclone(), components: null }, [], 0],
  ['null and a text as packages', { ...spdx(), packages: [null, 'flask'] }, [], 1],
  [
    'elements of SPDX 3 without a type, and with several',
    {
      '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld',
      '@graph': [
        { type: ['software_Package', 'acme_Part'], name: 'flask', software_packageUrl: 'pkg:pypi/flask@2.0.0' },
        { name: 'x' },
        null,
        { type: 'Person', name: 'x' },
      ],
    },
    [both[1]!],
    1,
  ],
  [
    'a package of SPDX 3 without a graph',
    {
      '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld',
      ...{ type: 'software_Package', name: 'flask', software_packageUrl: 'pkg:pypi/flask@2.0.0' },
    },
    [both[1]!],
    0,
  ],
  [
    'a version that nobody asserts',
    { ...spdx(), packages: [{ versionInfo: 'NOASSERTION', externalRefs: [purlRef('pkg:pypi/flask')] }] },
    [],
    1,
  ],
]

for (const [name, document, packages, gaps] of cases) {
  test(`no entry is lost: ${name}`, () => {
    const found = ofJson(document)
    assert.deepEqual(
      found.packages.map(({ kind, name, version }) => `${kind} ${name} ${version}`),
      packages,
    )
    assert.equal(found.gaps.length, gaps, JSON.stringify(found.gaps))
  })
}

test('limits coverage gaps of many types, and counts each package', () => {
  const purls = Array.from({ length: 200 }, (_, i) => ({ name: 'x', purl: `pkg:type${i}/x@1` }))
  const { gaps } = ofJson(cyclone(...purls))
  assert.equal(gaps.length, 21)
  assert.equal(gaps.at(-1)?.message, 'an SBOM has 180 packages of an unsupported type: other types')
})

test('the main module of a Go program has no version, as in the build information', () => {
  const { packages } = ofJson(cyclone({ name: 'app', purl: 'pkg:golang/github.com/acme/app' }))
  assert.deepEqual([packages[0]?.name, packages[0]?.version], ['github.com/acme/app', '(devel)'])
})

test('a distribution codename means its release, in a purl and as the operating system', () => {
  const openssl = (distro: string) => ({ name: 'openssl', purl: `pkg:deb/debian/openssl@3.0.11-1~deb12u1${distro}` })
  const twelve = { id: 'debian', version: '12' }
  assert.deepEqual(ofJson(cyclone(openssl('?distro=bookworm'))).distribution, twelve)
  assert.deepEqual(ofJson(cyclone(openssl('?distro=debian-Bookworm'))).distribution, twelve)
  const system = (name: string, version: string) => ({ type: 'operating-system', name, version })
  assert.deepEqual(ofJson(cyclone(system('debian', 'bookworm'), openssl(''))).distribution, twelve)
  assert.deepEqual(ofJson(cyclone(system('debian', '12.5'), openssl(''))).distribution, { ...twelve, version: '12.5' })
  assert.deepEqual(ofJson(cyclone(system('Debian GNU/Linux', ''), openssl('?distro=debian-12'))).distribution, twelve)
  const jammy = { name: 'zlib', purl: 'pkg:deb/ubuntu/zlib@1?distro=jammy' }
  assert.deepEqual(ofJson(cyclone(jammy)).distribution, { id: 'ubuntu', version: '22.04' })
})

test('packages whose purl has no release get the operating system version of the SBOM, in each format', () => {
  const purl = 'pkg:apk/alpine/musl@1.2.3-r0'
  const system = { name: 'alpine', version: '3.19.1' }
  const spdx2 = (name: string, versionInfo: string, more: Json) => ({
    SPDXID: `SPDXRef-${name}`,
    name,
    versionInfo,
    ...more,
  })
  const spdx3 = (name: string, version: string, more: Json) => ({
    ...{ type: 'software_Package', spdxId: `urn:${name}`, name, software_packageVersion: version, ...more },
  })
  const documents: Record<string, Json> = {
    cyclone: cyclone({ name: 'musl', purl }, { type: 'operating-system', ...system }),
    spdx2: {
      spdxVersion: 'SPDX-2.3',
      packages: [
        spdx2('musl', '1.2.3-r0', { externalRefs: [{ referenceType: 'purl', referenceLocator: purl }] }),
        spdx2(system.name, system.version, { primaryPackagePurpose: 'OPERATING-SYSTEM' }),
      ],
    },
    spdx3: {
      '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld',
      '@graph': [
        spdx3('musl', '1.2.3-r0', { software_packageUrl: purl }),
        spdx3(system.name, system.version, { software_primaryPurpose: 'operatingSystem' }),
      ],
    },
  }
  for (const [format, document] of Object.entries(documents)) {
    const { distribution, packages } = ofJson(document)
    assert.deepEqual(distribution, { id: 'alpine', version: '3.19.1' }, format)
    assert.deepEqual(
      packages.map(({ name }) => name),
      ['musl'],
      format,
    )
  }
})

test('reports a coverage gap for packages of another release than the compared one', () => {
  const zlib = (release: string) => ({
    name: 'zlib',
    purl: `pkg:deb/debian/zlib@1.${release}?distro=debian-${release}`,
  })
  assert.deepEqual(ofJson(cyclone(zlib('12'), zlib('12.5'))).gaps, [])
  const system = { type: 'operating-system', name: 'debian', version: '12' }
  assert.deepEqual(ofJson(cyclone(system, { name: 'zlib', purl: 'pkg:deb/debian/zlib@1' })).gaps, [])
  assert.deepEqual(
    ofJson(cyclone(system, { name: 'zlib', purl: 'pkg:deb/ubuntu/zlib@1' })).gaps.map(({ message }) => message),
    ['an SBOM has 1 package of ubuntu, compared with advisories for debian 12'],
  )
  const red = { type: 'operating-system', name: 'rhel', version: '9.2' }
  assert.deepEqual(ofJson(cyclone(red, { name: 'zlib', purl: 'pkg:rpm/redhat/zlib@1-1' })).gaps, [])
  assert.deepEqual(
    ofJson(cyclone(zlib('12'), zlib('11'))).gaps.map(({ message }) => message),
    ['an SBOM has 1 package of debian 11, compared with advisories for debian 12'],
  )
  for (const codename of ['nosuch', 'kali-rolling']) {
    const later = { name: 'zlib', purl: `pkg:deb/debian/zlib@1?distro=${codename}` }
    const { distribution, gaps } = ofJson(cyclone(later, zlib('12')))
    assert.deepEqual(
      [distribution.version, ...gaps.map(({ message }) => message)],
      ['12', `an SBOM has 1 package of debian ${codename}, compared with advisories for debian 12`],
    )
  }
  assert.deepEqual(ofJson(cyclone(zlib('12'), { name: 'z', purl: 'pkg:deb/debian/z@1?distro=debian' })).gaps, [])
})

test('a package URL with a wrong escape in its name is invalid, and not a package without vulnerabilities', () => {
  const { packages, gaps } = ofJson(
    cyclone({ name: 'a', purl: 'pkg:npm/%zz@1' }, { name: 'b', purl: 'pkg:npm/%40acme/a%25b@1' }),
  )
  assert.deepEqual(
    packages.map(({ name }) => name),
    ['@acme/a%b'],
  )
  assert.deepEqual(
    gaps.map(({ message }) => message),
    ['an SBOM has 1 package with an invalid package URL'],
  )
})
