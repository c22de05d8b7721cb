import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from '../../../test/support/fixtures.ts'
import { withMissingDatabase } from '../join.ts'
import type { ImageContents, Package } from '../packages.ts'
import { readApkDatabase } from './apk-database.ts'
import { readDpkgDatabase } from './dpkg-database.ts'
import { readFiles } from './files.ts'
import { onBranch, readOsRelease } from './os-release.ts'

const apk = 'lib/apk/db/installed'
const dpkg = 'var/lib/dpkg/status'
const contentsOf = (files: Record<string, Uint8Array | string>): ImageContents | undefined =>
  readFiles(Object.entries(files).map(([path, content]) => ({ path, bytes: Buffer.from(content) })))
const packagesIn = (files: Record<string, Uint8Array | string>): Package[] => contentsOf(files)!.packages
const namesIn = (files: Record<string, Uint8Array | string>) => packagesIn(files).map(({ name }) => name)
const damaged = { name: 'Unreadable', reason: 'DAMAGED' }

test('reads name, version, origin and architecture of each package from an apk database', () => {
  const packages = packagesIn({ [apk]: fixture('contents/alpine-3.10/installed') })
  assert.equal(packages.length, 14)
  assert.deepEqual(
    packages.find(({ name }) => name === 'ssl_client'),
    {
      kind: 'apk',
      name: 'ssl_client',
      version: '1.30.1-r3',
      origin: 'busybox',
      originVersion: '1.30.1-r3',
      arch: 'x86_64',
    },
  )
})

test('reads each apk database of the fixtures completely', () => {
  const counts = {
    'alpine-2016': 15,
    'alpine-3.11': 14,
    'alpine-14-packages': 14,
    'alpine-2-packages': 4,
    'mixed-coverage': 2,
  }
  for (const [image, count] of Object.entries(counts)) {
    assert.equal(packagesIn({ [apk]: fixture(`contents/${image}/installed`) }).length, count, image)
  }
})

test('reads nothing from a database with a broken line', () => {
  assert.throws(() => contentsOf({ [apk]: fixture('contents/negative/apk-corrupt') }), damaged)
  assert.throws(() => contentsOf({ [`${dpkg}.d/corrupt`]: fixture('contents/negative/dpkg-corrupt') }), damaged)
  assert.throws(() => contentsOf({ [apk]: 'P:a\nV:1\n\n\0\0\0\0' }), damaged)
})

test('reports a coverage gap for a record without a name or a version', () => {
  const text = 'P:a\n\n\nV:1\n\nP:b\nV:2\n\nA:x86_64'
  const deb =
    'Package: a\n\nVersion: 1\nStatus: install ok installed\n\nPackage: gone\nStatus: purge ok not-installed\n'
  const { packages, gaps } = contentsOf({ [apk]: text, [dpkg]: deb })!
  assert.deepEqual(
    packages.map(({ name }) => name),
    ['b'],
  )
  assert.deepEqual(
    gaps.map(({ path, reason, message }) => `${path} ${reason} ${message}`),
    [
      `${apk} UNIDENTIFIED an apk package without a version: a`,
      `${apk} UNIDENTIFIED an apk package without a name`,
      `${apk} UNIDENTIFIED an apk package without a name`,
      `${dpkg} UNIDENTIFIED a dpkg package without a version: a`,
      `${dpkg} UNIDENTIFIED a dpkg package without a name`,
    ],
  )
})

test('reports a package or a coverage gap for each entry of the databases in the fixtures', () => {
  const images = ['alpine-2016', 'alpine-3.10', 'alpine-3.11', 'alpine-14-packages', 'alpine-2-packages']
  for (const image of images) {
    const text = fixture(`contents/${image}/installed`).toString()
    assert.equal([...readApkDatabase(text)].length, text.match(/^P:/gm)!.length, image)
  }
  for (const name of ['ubuntu-18.04/status', 'debian-dpkg/status', 'dpkg-status-d/multiple']) {
    const text = fixture(`contents/${name}`).toString()
    assert.equal(
      [...readDpkgDatabase(text)].length,
      text.match(/^Package:/gm)!.length - (text.match(/ config-files$/gm) ?? []).length,
      name,
    )
  }
})

test('reads dpkg packages in each state with files on disk', () => {
  const database = (status: string) => ({ [dpkg]: `Package: a\nStatus: ${status}\nVersion: 1\n` })
  const present = ['unpacked', 'half-configured', 'half-installed', 'triggers-pending', 'triggers-awaited']
  const statuses = [...present.map((state) => `install ok ${state}`), 'hold ok installed', 'deinstall ok installed']
  for (const status of [...statuses, 'install reinstreq half-installed', 'install ok', 'install ok triggers-new']) {
    assert.deepEqual(namesIn(database(status)), ['a'], status)
  }
  for (const status of ['deinstall ok config-files', 'purge ok not-installed']) {
    assert.deepEqual(namesIn(database(status)), [], status)
  }
})

test('a record without a name or a version is not a package', () => {
  assert.deepEqual(namesIn({ [`${dpkg}.d/empty`]: fixture('contents/negative/dpkg-empty') }), [])
  assert.deepEqual(namesIn({ [`${dpkg}.d/many`]: fixture('contents/dpkg-status-d/multiple') }), [
    'tzdata',
    'util-linux',
  ])
  assert.deepEqual(namesIn({ [apk]: 'P:a\n\nV:1\n\nP:b\nV:2\n' }), ['b'])
})

test('reads the source package from a dpkg database, with its version if it differs', () => {
  const packages = packagesIn({ [dpkg]: fixture('contents/ubuntu-18.04/status') })
  assert.equal(packages.length, 90)
  const shown = (name: string) => packages.find((found) => found.name === name)
  const bash = { kind: 'deb', name: 'bash', version: '4.4.18-2ubuntu1', origin: 'bash', arch: 'amd64' }
  assert.deepEqual(shown('bash'), { ...bash, originVersion: bash.version })
  const gcc = { kind: 'deb', name: 'libgcc1', version: '1:8-20180414-1ubuntu2', arch: 'amd64' }
  assert.deepEqual(shown('libgcc1'), { ...gcc, origin: 'gcc-8', originVersion: '8-20180414-1ubuntu2' })
  const pam = packagesIn({ [dpkg]: fixture('contents/debian-dpkg/status') })
  assert.deepEqual(
    pam.map(({ name, version, origin, originVersion, arch }) => [name, version, origin, originVersion, arch]),
    [['libpam-runtime', '1.1.8-3.6', 'pam', '1.1.8-3.6', 'all']],
  )
})

test('lists only installed packages, and treats a file in status.d without a status as installed', () => {
  const of = (name: string) => namesIn({ [`${dpkg}.d/${name}`]: fixture(`contents/dpkg-status-d/${name}`) })
  assert.deepEqual(of('deinstall'), ['linux-image-6.14.0-1012-aws'])
  assert.equal(of('coreutils-relationships').length, 9)
  assert.ok(of('doc-examples').length > 0)
  const distroless = { [`${dpkg}.d/libsqlite3-0`]: fixture('contents/distroless-deb/libsqlite3-0') }
  assert.deepEqual(
    packagesIn(distroless).map(({ name, version, origin, arch }) => [name, version, origin, arch]),
    [['libsqlite3-0', '3.34.1-3', 'sqlite3', 'arm64']],
  )
})

test('combines several databases of one image, and lists a package in two of them once', () => {
  const text = 'P:b\nV:1\nA:x86_64\n\nP:a\nV:2\nA:x86_64\n'
  const deb = 'Package: a\nVersion: 2\nStatus: install ok installed\n'
  assert.deepEqual(namesIn({ [apk]: text, [`usr/${apk}`]: text, [dpkg]: deb, [`${dpkg}.d/a`]: deb }), ['a', 'b', 'a'])
})

test('without a database, the packages are unknown; with an empty one, no packages are installed', () => {
  const nothing = { packages: [], distribution: { id: '', version: '' }, hasDatabase: false, gaps: [] }
  assert.deepEqual(contentsOf({ 'etc/os-release': 'ID=a' }), { ...nothing, distribution: { id: 'a', version: '' } })
  assert.equal(contentsOf({}), undefined)
  assert.equal(contentsOf({ 'etc/os-release': 'NAME=a' }), undefined)
  assert.deepEqual(contentsOf({ [apk]: '' }), { ...nothing, hasDatabase: true })
})

test('reports a coverage gap for a distribution with an empty or missing database', () => {
  const release = { 'etc/os-release': 'ID=debian\nVERSION_ID="12"' }
  const gapsOf = (files: Record<string, string>) =>
    withMissingDatabase(contentsOf(files)!).gaps.map(({ reason, message }) => `${reason} ${message}`)
  assert.deepEqual(gapsOf({ ...release, [dpkg]: '' }), ['UNIDENTIFIED the package database of debian has no entries'])
  assert.deepEqual(gapsOf(release), ['UNIDENTIFIED no package database of debian could be read'])
  assert.deepEqual(gapsOf({ ...release, [dpkg]: 'Package: a\nVersion: 1\n' }), [])
  assert.deepEqual(gapsOf({ [apk]: '' }), [])
})

test('reads id and version from os-release, with or without quotes, and neither if missing', () => {
  const of = (name: string) =>
    Object.values(readOsRelease(fixture(`contents/os-release/${name}.os-release`).toString()))
  assert.deepEqual(of('syft-wolfi'), ['wolfi', '20220914'])
  assert.deepEqual(of('syft-ubuntu'), ['ubuntu', '20.04'])
  assert.deepEqual(of('syft-photon'), ['photon', '2.0'])
  assert.deepEqual(of('syft-debian-from-debian_version'), ['debian', ''])
  assert.deepEqual(of('trivy-no-id'), ['', '3.15.4'])
  assert.deepEqual(of('trivy-no-version'), ['alpine', ''])
  assert.deepEqual(of('trivy-unknown'), ['unknown', '4.3.2'])
  assert.deepEqual(Object.values(readOsRelease('ID=\'a b\'\nID="c\\"d"\nVERSION_ID=\n')), ['c"d', ''])
})

test('reads the service pack of openEuler from the long version in os-release', () => {
  const text = 'ID="openEuler"\nVERSION="22.03 (LTS-SP3)"\nVERSION_ID="22.03"\n'
  assert.deepEqual(readOsRelease(text), { id: 'openEuler', version: '22.03-LTS-SP3' })
  const versionOf = (long: string) => readOsRelease(`ID=openEuler\nVERSION="${long}"\nVERSION_ID="22.03"`).version
  assert.equal(versionOf('22.03 LTS'), '22.03-LTS')
  assert.equal(versionOf('22.03 LTS SP4'), '22.03-LTS-SP4')
  assert.equal(versionOf('22.03'), '22.03')
  assert.equal(readOsRelease('ID=openEuler\nVERSION_ID=24.03').version, '24.03')
})

test('refuses more packages or longer texts than any real image has', () => {
  const many = Array.from({ length: 20_001 }, (_, i) => `P:p${i}\nV:1\n`).join('\n')
  const limit = { name: 'Unreadable', reason: 'LIMIT_EXCEEDED' }
  assert.throws(() => contentsOf({ [apk]: many }), limit)
  const large = Array.from({ length: 10_000 }, (_, i) => `P:p${i}\nV:${'1'.repeat(500)}\n`).join('\n')
  assert.throws(() => contentsOf({ [apk]: large }), limit)
  assert.throws(() => contentsOf({ [apk]: `P:${'x'.repeat(513)}\nV:1\n` }), limit)
})

test('assigns no release to an image with only Alpine edge repositories, whatever its os-release contains', () => {
  const alpine = { id: 'alpine', version: '3.16' }
  const [edge, stable] = ['https://a.test/alpine/edge/main\n', 'https://a.test/alpine/v3.16/main\n']
  assert.equal(onBranch(alpine, `# now\n${edge}${edge}`).version, 'edge')
  for (const text of ['', '# edge\n', stable, `${stable}${edge}`]) assert.equal(onBranch(alpine, text).version, '3.16')
  assert.equal(onBranch({ id: 'wolfi', version: '1' }, edge).version, '1')
})
