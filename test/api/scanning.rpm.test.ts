// Findings and coverage gaps of images with packages of rpm, from a push to the API.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readOsv } from '#sources/osv.ts'
import { ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import type { LayerEntries } from '../support/layers.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { berkeleyDatabase, ndbDatabase, type RpmPackage, rpmHeader } from '../support/rpm.ts'
import { pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'
import { insertPackages, loggedDatabase } from '../support/sqlite-log.ts'

let registry: TestRegistry
let viewer: Client
let repo = ''

/** A record of OSV about one package, as distributions publish them. */
function record(id: string, ecosystem: string, name: string, fixed: string, summary = `Important: ${name} update`) {
  const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }]
  return readOsv(JSON.stringify({ id, summary, affected: [{ package: { ecosystem, name }, ranges }] }))
}

before(async () => {
  registry = await startRegistry()
  const { seed, org } = registry
  repo = (await seed.repo(org.uid, { name: 'app' })).uid
  viewer = await registry.as((await seed.member(org.uid, roleUids.viewer)).uid)
  const [rocky, red, alma] = ['Rocky Linux:9', 'Red Hat:enterprise_linux:9::baseos', 'AlmaLinux:8']
  await readSource(registry.app, 'Rocky Linux', [
    record('RLSA-1', rocky, 'openssl', '1:3.0.7-16.el9_2'),
    record('RLSA-2', rocky, 'openssl', '1:3.0.7-6.el9_2'),
    record('RLSA-3', 'Rocky Linux:8', 'openssl', '9:9-9'),
  ])
  await readSource(registry.app, 'Red Hat', [record('RHSA-1', red, 'openssl-libs', '1:3.0.7-16.el9_2')])
  await readSource(registry.app, 'AlmaLinux', [
    record('ALSA-1', alma, 'nodejs', '1:18.16.1-1.module_el8', 'Important: nodejs:18 security update'),
    record('ALSA-2', alma, 'nodejs', '1:20.1.0-1.module_el8', 'Important: nodejs:20 security update'),
  ])
  await readSource(registry.app, 'Azure Linux', [record('AZL-1', 'Azure Linux:2', 'bash', '0:5.1.9-1.cm2')])
  await readSource(registry.app, 'SUSE', [
    record('SUSE-SU-1', 'SUSE:Linux Enterprise Module for Basesystem 15 SP5', 'openssl', '1:9-1'),
  ])
  await readSource(registry.app, 'PyPI', [recordAbout('CVE-2026-flask', 'PyPI', 'flask', '3.0.0')])
})
after(() => registry[Symbol.asyncDispose]())

async function scan(layer: LayerEntries): Promise<{ found: string[]; gaps: string[] }> {
  const digest = await pushAndScan(registry, 'acme/app', layer)
  const { findings, gaps } = ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`))
  return {
    found: findings.map(({ record, purl }: Json) => `${record} ${purl}`).sort(),
    gaps: gaps.map(({ subject, message }: Json) => `${subject} ${message}`.trim()),
  }
}

const release = (id: string, version: string) => ({ 'etc/os-release': `ID="${id}"\nVERSION_ID="${version}"\n` })
const openssl: RpmPackage[] = [
  { name: 'openssl', version: '3.0.7', release: '6.el9_2', epoch: 1, source: 'openssl-3.0.7-6.el9_2.src.rpm' },
  { name: 'openssl-libs', version: '3.0.7', release: '6.el9_2', epoch: 1, source: 'openssl-3.0.7-6.el9_2.src.rpm' },
]
const blobs = openssl.map(rpmHeader)
const ofRocky = ['openssl-libs', 'openssl'].map(
  (name) => `RLSA-1 pkg:rpm/rocky/${name}@3.0.7-6.el9_2?arch=x86_64&epoch=1`,
)

test('finds vulnerabilities by the source package in each location and format of the RPM database', async () => {
  const databases: LayerEntries[] = [
    { 'var/lib/rpm/Packages': berkeleyDatabase(blobs) },
    { 'usr/lib/sysimage/rpm/Packages.db': ndbDatabase(blobs) },
    { 'usr/share/rpm/Packages.db': ndbDatabase(blobs) },
    {
      'var/lib/rpm': { type: 'symlink', linkname: '../../usr/lib/sysimage/rpm' },
      'usr/lib/sysimage/rpm/Packages.db': ndbDatabase(blobs),
    },
  ]
  for (const database of databases) {
    assert.deepEqual(await scan({ ...release('rocky', '9.2'), ...database }), { found: ofRocky, gaps: [] })
  }
  const real = fixture('contents/rpm/rpmdb.sqlite.gz')
  const noarch = ofRocky.map((one) => one.replace('x86_64', 'noarch'))
  assert.deepEqual(await scan({ ...release('rocky', '9.2'), 'usr/share/rpm/rpmdb.sqlite': real }), {
    found: noarch,
    gaps: [],
  })
})

test('finds advisories for parts of a `rhel` release and for modules of a `sles` release', async () => {
  const database = { 'var/lib/rpm/Packages': berkeleyDatabase(blobs) }
  const red = await scan({ ...release('rhel', '9.2'), ...database })
  assert.deepEqual(red, { found: ['RHSA-1 pkg:rpm/rhel/openssl-libs@3.0.7-6.el9_2?arch=x86_64&epoch=1'], gaps: [] })
  const suse = await scan({ ...release('sles', '15.5'), ...database })
  assert.deepEqual([suse.found.length, suse.gaps], [2, []])
})

test('a fix in another module stream does not match', async () => {
  const of = (module: string, version: string) => ({
    ...release('almalinux', '8.9'),
    'var/lib/rpm/Packages': berkeleyDatabase([
      rpmHeader({ name: 'nodejs', version, release: '1.module_el8', epoch: 1, module: `${module}:80900:x` }),
    ]),
  })
  const { found, gaps } = await scan(of('nodejs:18', '18.14.2'))
  assert.deepEqual(gaps, [])
  assert.deepEqual(found, [
    'ALSA-1 pkg:rpm/almalinux/nodejs@18.14.2-1.module_el8?arch=x86_64&epoch=1&rpmmod=nodejs%3A18',
  ])
  assert.deepEqual((await scan(of('nodejs:20', '20.1.0'))).found, [])
  assert.deepEqual((await scan(of('nodejs:16', '16.0.0'))).found, [])
})

test('reads the package list of Azure Linux images, which have no database', async () => {
  const line = 'bash\t5.1.8-1.cm2\t1\t1\tMicrosoft Corporation\t(none)\t1\tx86_64\t0\tbash-5.1.8-1.cm2.src.rpm\n'
  const image = { ...release('mariner', '2.0'), 'var/lib/rpmmanifest/container-manifest-2': line }
  assert.deepEqual(await scan(image), { found: ['AZL-1 pkg:rpm/mariner/bash@5.1.8-1.cm2?arch=x86_64'], gaps: [] })
})

test('finds vulnerabilities of packages that are only in the write-ahead log of the RPM database', async () => {
  const { bytes, log } = loggedDatabase((database) => insertPackages(database, blobs))
  const image = { ...release('rocky', '9.2'), 'var/lib/rpm/rpmdb.sqlite': bytes }
  assert.deepEqual(await scan({ ...image, 'var/lib/rpm/rpmdb.sqlite-wal': log }), { found: ofRocky, gaps: [] })
  const { found, gaps } = await scan({ ...image, 'var/lib/rpm/rpmdb.sqlite-wal': log.subarray(0, 5000) })
  assert.deepEqual(found, [])
  assert.ok(
    gaps.includes('var/lib/rpm/rpmdb.sqlite-wal DAMAGED: the write-ahead log is damaged or incomplete'),
    String(gaps),
  )
})

test('reports a coverage gap for a damaged database, one with a log, or a distribution without advisories', async () => {
  const flask = pythonPackage('flask', '2.0.0')
  const found = ['CVE-2026-flask pkg:pypi/flask@2.0.0']
  const rocky = release('rocky', '9.2')
  assert.deepEqual(await scan({ ...rocky, ...flask, 'var/lib/rpm/rpmdb.sqlite': Buffer.alloc(5000) }), {
    found,
    gaps: [
      'UNIDENTIFIED: no package database of rocky could be read',
      'var/lib/rpm/rpmdb.sqlite UNSUPPORTED: the rpm database has an unknown format',
    ],
  })
  const logged = { 'var/lib/rpm/Packages.db': ndbDatabase(blobs), 'var/lib/rpm/rpmdb.sqlite-wal': 'x' }
  assert.deepEqual(await scan({ ...rocky, ...logged }), {
    found: ofRocky,
    gaps: ['var/lib/rpm/rpmdb.sqlite-wal DAMAGED: the write-ahead log has no rpm database that could be read'],
  })
})

test('reports a coverage gap with the reason for distributions without advisories in OSV', async () => {
  const database = { 'var/lib/rpm/Packages.db': ndbDatabase(blobs) }
  for (const [id, version] of [
    ['fedora', '40'],
    ['centos', '9'],
    ['ol', '9.3'],
    ['amzn', '2023'],
    ['openEuler', '23.09'],
  ] as const) {
    assert.deepEqual(await scan({ ...release(id, version), ...database }), {
      found: [],
      gaps: [`OSV has no advisories for ${id} ${version}, so its packages were not compared`],
    })
  }
  const { gaps } = await scan({ 'etc/os-release': 'ID=rhel\n', ...database })
  assert.deepEqual(gaps, ['OSV has no advisories for rhel without a version, so its packages were not compared'])
  const unnamed = await scan(database)
  assert.deepEqual(unnamed.gaps, ['packages of an unknown distribution, because the image does not name one'])
})
