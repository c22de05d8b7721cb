// Inputs of public bug reports of scanners that reported too little. Each is compared or is a coverage gap.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { readOsv } from '#sources/osv.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import type { LayerEntries } from '../support/layers.ts'
import type { Json } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { readSource } from '../support/scanning.ts'

let registry: TestRegistry
let repo = ''

const record = (id: string, ecosystem: string, name: string, fixed?: string, type = 'ECOSYSTEM') => {
  const events = [{ introduced: '0' }, ...(fixed === undefined ? [] : [{ fixed }])]
  return readOsv(JSON.stringify({ id, affected: [{ package: { ecosystem, name }, ranges: [{ type, events }] }] }))
}

before(async () => {
  registry = await startRegistry()
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const { app } = registry
  await readSource(app, 'npm', [
    record('MAL-2022-1471', 'npm', 'bats-file', undefined, 'SEMVER'),
    record('GHSA-router', 'npm', '@remix-run/router', '1.23.2', 'SEMVER'),
  ])
  await readSource(app, 'Maven', [record('GHSA-protobuf', 'Maven', 'com.google.protobuf:protobuf-java', '3.16.3')])
  await readSource(app, 'Debian', [record('DSA-curl', 'Debian:10', 'curl', '7.64.0-4+deb10u4')])
  await readSource(app, 'Ubuntu', [record('USN-pro', 'Ubuntu:Pro:18.04:LTS', 'curl', '7.58.0-2ubuntu3.24+esm5')])
  await readSource(app, 'SUSE', [
    record('SUSE-SU-2026:0903-1', 'SUSE:Linux Enterprise Module for Basesystem 15 SP7', 'curl', '8.14.1-1'),
  ])
  await readSource(app, 'Go', [record('GO-1', 'Go', 'github.com/jinzhu/gorm', '1.9.10', 'SEMVER')])
})
after(() => registry[Symbol.asyncDispose]())

let count = 0
async function scan(layer: LayerEntries, document?: Json, type = 'application/vnd.cyclonedx+json') {
  const image = await pushLayers(registry.pusher, 'acme/app', [{ 'app/server': `binary ${count++}`, ...layer }])
  if (document) await pushSbom(registry.pusher, 'acme/app', image, JSON.stringify(document), type)
  await runJob(registry.app, readImages)
  await runJob(registry.app, matchPackages)
  const viewer = await registry.as(registry.pusher.uid)
  const { findings, gaps } = ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${image.digest}/findings`))
  return {
    found: findings.map(({ record }: Json) => record).sort(),
    gaps: gaps.map(({ subject, message }: Json) => `${subject} ${message}`.trim()),
  }
}
const cyclone = (...components: Json[]): Json => ({ bomFormat: 'CycloneDX', specVersion: '1.5', components })
const library = (name: string, version: string, purl: string): Json => ({ type: 'library', name, version, purl })
const dpkg = (name: string, version: string) => ({
  'var/lib/dpkg/status': `Package: ${name}\nStatus: install ok installed\nVersion: ${version}\nArchitecture: amd64\n`,
})
const suse = 'SUSE%20Linux%20Enterprise%20Module%20for%20Basesystem%2015%20SP7'
const spdx: Json = {
  spdxVersion: 'SPDX-2.3',
  packages: [
    {
      ...{ name: 'protobuf-java', SPDXID: 'SPDXRef-1', versionInfo: '3.7.1' },
      externalRefs: [{ referenceType: 'purl', referenceLocator: 'pkg:maven/com.google.protobuf/protobuf-java@3.7.1' }],
    },
  ],
}
const found = (...ids: string[]) => ({ found: ids, gaps: [] })

const inputs: [report: string, layer: LayerEntries, document: Json | undefined, expected: Json | RegExp][] = [
  [
    'DependencyTrack 5716: a range without an end',
    {},
    cyclone(library('bats-file', '0.2.0', 'pkg:npm/bats-file@0.2.0')),
    found('MAL-2022-1471'),
  ],
  [
    'DependencyTrack 5675: an escaped npm scope',
    {},
    cyclone({ ...library('router', '1.23.1', 'pkg:npm/%40remix-run/router@1.23.1'), group: '@remix-run' }),
    found('GHSA-router'),
  ],
  [
    'DependencyTrack 2907: a version after the fix',
    {},
    cyclone(library('gorm', '1.9.16', 'pkg:golang/github.com/jinzhu/gorm@1.9.16')),
    found(),
  ],
  [
    'DependencyTrack 6872: a SUSE module in place of a release',
    {},
    cyclone(library('curl', '8.14.0-1', `pkg:rpm/suse/curl@8.14.0-1?distro=${suse}`)),
    /OSV has no advisories for suse/,
  ],
  [
    'DependencyTrack 6872: a package URL without a question mark',
    {},
    cyclone(library('curl', '8.14.0-1', `pkg:rpm/suse/curl%26distro%3D${suse}`)),
    /OSV has no advisories for suse/,
  ],
  ['trivy 2934 and 3081: an SPDX document of another tool', {}, spdx, found('GHSA-protobuf')],
  [
    'trivy 3647: a Maven version below the fix',
    {},
    cyclone({ ...library('protobuf-java', '3.7.1', 'pkg:maven/com.google.protobuf/protobuf-java@3.7.1') }),
    found('GHSA-protobuf'),
  ],
  [
    'trivy 3237: a Go program without a name',
    {},
    cyclone(library('', '(devel)', 'pkg:golang/@%28devel%29')),
    /1 package with an invalid package URL/,
  ],
  [
    'grype 2707: a codename of Debian',
    {},
    cyclone(library('curl', '7.64.0-4+deb10u1', 'pkg:deb/debian/curl@7.64.0-4%2Bdeb10u1?arch=source&distro=buster')),
    found('DSA-curl'),
  ],
  [
    'trivy 160 and grype 2555: Debian without a version',
    { 'etc/os-release': 'PRETTY_NAME="Debian GNU/Linux buster/sid"\nID=debian\n', ...dpkg('curl', '7.64.0-4') },
    undefined,
    /OSV has no advisories for debian without a version/,
  ],
  ['grype 684: packages without a distribution', dpkg('curl', '7.64.0-4'), undefined, /unknown distribution/],
  [
    'grype 2796: an unknown distribution',
    { 'etc/os-release': 'ID=fake-distro\n', ...dpkg('curl', '7.64.0-4') },
    undefined,
    /OSV has no advisories for fake-distro/,
  ],
  [
    'grype 3119: Ubuntu after the end of standard support',
    { 'etc/os-release': 'ID=ubuntu\nVERSION_ID="18.04"\n', ...dpkg('curl', '7.58.0-2ubuntu3.24') },
    undefined,
    found('USN-pro'),
  ],
  [
    'claircore 1535: a database behind a link to nothing',
    {
      'etc/os-release': 'ID=rocky\nVERSION_ID="9.3"\n',
      'var/lib/rpm/rpmdb.sqlite': { type: 'symlink', linkname: '../../../usr/share/rpm/rpmdb.sqlite' },
    },
    undefined,
    /no package database of rocky could be read.*which was not read/s,
  ],
]

for (const [report, layer, document, expected] of inputs) {
  test(`compares the input of a public report or names a coverage gap: ${report}`, async () => {
    const type = document?.spdxVersion === undefined ? 'application/vnd.cyclonedx+json' : 'application/spdx+json'
    const result = await scan(layer, document, type)
    if (expected instanceof RegExp) assert.match(result.gaps.join('\n'), expected, JSON.stringify(result))
    else assert.deepEqual(result, expected)
  })
}
