import assert from 'node:assert/strict'
import { test } from 'node:test'
import { schemeOf } from '#versions/order.ts'
import { fixture } from '../../test/support/fixtures.ts'
import { readOsRelease } from './databases/os-release.ts'
import { ecosystemOf, isSameDistribution, kindOfEcosystem, withAllReleases } from './ecosystems.ts'
import { distributionOf, packageOf, packageUrl } from './package-url.ts'
import type { PackageKind } from './packages.ts'
import { archWithModule } from './rpm-module.ts'

const distributions: [kind: PackageKind, id: string, version: string, ecosystem: string][] = [
  ['apk', 'alpine', '3.19.1', 'Alpine:v3.19'],
  ['apk', 'alpine', '3.19', 'Alpine:v3.19'],
  ['apk', 'alpine', '3.21_alpha20240807', 'Alpine:edge'],
  ['apk', 'alpine', 'edge', 'Alpine:edge'],
  ['apk', 'alpine', '', ''],
  ['apk', 'wolfi', '20230201', 'Wolfi'],
  ['apk', 'chainguard', '20230214', 'Chainguard'],
  ['apk', 'debian', '12', ''],
  ['apk', 'postmarketos', 'v23.12', ''],
  ['apk', 'constructor', '1', ''],
  ['deb', 'debian', '12', 'Debian:12'],
  ['deb', 'debian', '12.5', 'Debian:12'],
  ['deb', 'debian', 'sid', 'Debian:sid'],
  ['deb', 'debian', 'trixie/sid', ''],
  ['apk', 'alpaquita', '23', 'Alpaquita:23'],
  ['apk', 'alpaquita', 'stream', 'Alpaquita:stream'],
  ['apk', 'bellsoft-hardened-containers', '23', 'BellSoft Hardened Containers:23'],
  ['apk', 'cleanstart', '1.0', 'CleanStart'],
  ['apk', 'clnstrt', '', 'CleanStart'],
  ['apk', 'minimos', '20241031', 'MinimOS'],
  ['apk', 'dhi', '3.24', 'Docker Hardened Images:Alpine:3.24'],
  ['deb', 'dhi', '13', 'Docker Hardened Images:Debian:13'],
  ['deb', 'dhi', '', ''],
  ['deb', 'echo', '1', 'Echo'],
  ['deb', 'ubuntu', '22.04', 'Ubuntu:22.04:LTS'],
  ['deb', 'ubuntu', '23.10', 'Ubuntu:23.10'],
  ['deb', 'ubuntu', '23.04', 'Ubuntu:23.04'],
  ['deb', 'Ubuntu', '24.04', 'Ubuntu:24.04:LTS'],
  ['deb', 'raspbian', '11', ''],
  ['rpm', 'rhel', '9.2', 'Red Hat:enterprise_linux:9'],
  ['rpm', 'rhel', '10.1', 'Red Hat:enterprise_linux:10.1'],
  ['rpm', 'rhel', '', ''],
  ['rpm', 'rocky', '9.3', 'Rocky Linux:9'],
  ['rpm', 'almalinux', '8.9', 'AlmaLinux:8'],
  ['rpm', 'opensuse-leap', '15.5', 'openSUSE:Leap 15.5'],
  ['rpm', 'opensuse-tumbleweed', '20240101', 'openSUSE:Tumbleweed'],
  ['rpm', 'opensuse-leap-micro', '5.5', 'openSUSE:Leap Micro 5.5'],
  ['rpm', 'opensuse', '42.3', 'openSUSE:Leap 42.3'],
  ['rpm', 'sle_hpc', '15.4', 'SUSE:Linux Enterprise High Performance Computing 15 SP4'],
  ['rpm', 'sle-micro', '5.5', 'SUSE:Linux Enterprise Micro 5.5'],
  ['rpm', 'sl-micro', '6.2', 'SUSE:Linux Micro 6.2'],
  ['rpm', 'sles', '15.5', 'SUSE:Linux Enterprise Server 15 SP5'],
  ['rpm', 'sles', '15', 'SUSE:Linux Enterprise Server 15'],
  ['rpm', 'sles', '16.0', 'SUSE:Linux Enterprise Server 16.0'],
  ['rpm', 'openEuler', '22.03-LTS-SP3', 'openEuler:22.03-LTS-SP3'],
  ['rpm', 'openeuler', '22.03-lts-sp3', 'openEuler:22.03-LTS-SP3'],
  ['rpm', 'openEuler', '20.03-LTS', 'openEuler:20.03-LTS'],
  ['rpm', 'openEuler', '23.09', ''],
  ['rpm', 'openEuler', '22.03', ''],
  ['rpm', 'mageia', '9', 'Mageia:9'],
  ['rpm', 'azurelinux', '3.0', 'Azure Linux:3'],
  ['rpm', 'mariner', '2.0', 'Azure Linux:2'],
  ['rpm', 'fedora', '40', ''],
  ['rpm', 'centos', '9', ''],
  ['rpm', 'ol', '9.3', ''],
  ['rpm', 'amzn', '2023', ''],
  // The schema has an ecosystem, but OSV has no records for it.
  ['rpm', 'photon', '5.0', ''],
  ['rpm', 'constructor', '1', ''],
  ['deb', 'rhel', '9', ''],
  ['pypi', 'alpine', '3.19', 'PyPI'],
  ['npm', '', '', 'npm'],
  ['gem', '', '', 'RubyGems'],
  ['maven', '', '', 'Maven'],
  ['golang', '', '', 'Go'],
  ['cargo', '', '', 'crates.io'],
]

for (const [kind, id, version, ecosystem] of distributions) {
  test(`the ecosystem of ${kind} packages in ${id || 'any distribution'} ${version} is "${ecosystem}"`, () => {
    assert.equal(ecosystemOf(kind, { id, version }), ecosystem)
  })
}

test('two version numbers of one release are the same distribution; two releases or names are not', () => {
  const same = (...[one, other]: [[string, string], [string, string]]) =>
    isSameDistribution({ id: one[0], version: one[1] }, { id: other[0], version: other[1] })
  assert.ok(same(['alpine', '3.19.1'], ['alpine', '3.19.4']))
  assert.ok(same(['debian', '12'], ['debian', '12.5']))
  assert.ok(same(['constructor', '1'], ['constructor', '1']))
  assert.ok(same(['openEuler', '22.03-LTS-SP3'], ['openeuler', '22.03-LTS-SP3']))
  assert.ok(same(['Constructor', '1'], ['constructor', '1']))
  assert.ok(same(['rhel', '9.2'], ['redhat', '9.3']))
  assert.ok(!same(['alpine', '3.19.1'], ['alpine', '3.20.1']))
  assert.ok(!same(['wolfi', '2023'], ['chainguard', '2023']))
  // Without an ecosystem, only equal versions count as the same.
  assert.ok(!same(['constructor', '1'], ['constructor', '2']))
})

test('knows an ecosystem for each release in real images', () => {
  const of = (kind: PackageKind, path: string) => ecosystemOf(kind, readOsRelease(fixture(path).toString()))
  assert.equal(of('apk', 'contents/alpine-3.10/os-release'), 'Alpine:v3.10')
  assert.equal(of('apk', 'contents/os-release/syft-wolfi.os-release'), 'Wolfi')
  assert.match(of('deb', 'contents/os-release/syft-ubuntu.os-release'), /^Ubuntu:\d\d\.\d\d(:LTS)?$/)
})

const urls: [url: string, kind: PackageKind, name: string, version: string][] = [
  ['pkg:npm/%40babel/core@7.24.0', 'npm', '@babel/core', '7.24.0'],
  ['pkg:npm/lodash@4.17.21', 'npm', 'lodash', '4.17.21'],
  ['pkg:golang/github.com/gin-gonic/gin@v1.9.1', 'golang', 'github.com/gin-gonic/gin', 'v1.9.1'],
  ['pkg:golang/stdlib@1.22.1', 'golang', 'stdlib', '1.22.1'],
  ['pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1', 'maven', 'org.apache.logging.log4j:log4j-core', '2.14.1'],
  ['pkg:pypi/zope-interface@6.0', 'pypi', 'zope-interface', '6.0'],
  ['pkg:gem/rails@7.0.4', 'gem', 'rails', '7.0.4'],
  ['pkg:cargo/rand@0.7.2', 'cargo', 'rand', '0.7.2'],
]

for (const [url, kind, name, version] of urls) {
  test(`${url} converts to the package name in advisories, and back`, () => {
    const found = { kind, name, version, origin: name, originVersion: version, arch: '' }
    assert.deepEqual(packageOf(url), found)
    assert.equal(packageUrl(found, 'alpine'), url)
  })
}

test('normalizes Python names, and ignores packages without a version or of an unsupported kind', () => {
  assert.equal(packageOf('pkg:pypi/Zope.Interface@6.0')?.name, 'zope-interface')
  for (const url of ['pkg:pypi/django', 'pkg:npm/@1', 'pkg:rpm/fedora/curl', 'pkg:generic/x@1', 'x']) {
    assert.equal(packageOf(url), undefined, url)
  }
})

test('converts an rpm package URL with epoch and module to a version, and back', () => {
  const url = 'pkg:rpm/rhel/nodejs@18.14-2.module%2Bel8?arch=x86_64&epoch=1&rpmmod=nodejs%3A18'
  const found = packageOf(url)!
  const version = '1:18.14-2.module+el8'
  const same = { kind: 'rpm', name: 'nodejs', version, origin: 'nodejs', originVersion: version, arch: 'x86_64' }
  assert.deepEqual(found, { ...same, module: 'nodejs:18' })
  assert.equal(packageUrl({ ...found, arch: archWithModule(found.arch, found.module) }, 'rhel'), url)
  const libs = packageOf('pkg:rpm/rhel/openssl-libs@3.0.7-6.el9?epoch=1&upstream=openssl-3.0.7-6.el9.src.rpm')
  assert.deepEqual([libs?.origin, libs?.originVersion], ['openssl', '1:3.0.7-6.el9'])
  const network =
    'pkg:rpm/rhel/NetworkManager-libnm@1.40.16-15.el8_9?distro=rhel-8.10&epoch=1&sourcerpm=NetworkManager-1.40.16-15.el8_9.src.rpm'
  const { version: named, origin, originVersion } = packageOf(network)!
  const epoch = '1:1.40.16-15.el8_9'
  assert.deepEqual([named, origin, originVersion], [epoch, 'NetworkManager', epoch])
  assert.deepEqual(distributionOf(network), { id: 'rhel', version: '8.10' })
})

test('looks up advisories of a release in all parts of the release', () => {
  const red = withAllReleases('Red Hat:enterprise_linux:9')
  assert.ok(red.includes('Red Hat') && red.includes('Red Hat:enterprise_linux:9::appstream'))
  assert.ok(withAllReleases('Red Hat:enterprise_linux:10.0').includes('Red Hat:enterprise_linux:10.2'))
  const suse = withAllReleases('SUSE:Linux Enterprise Server 15 SP5')
  assert.ok(suse.includes('SUSE:Linux Enterprise Module for Basesystem 15 SP5'))
  const suse12 = withAllReleases('SUSE:Linux Enterprise Server 12 SP5')
  assert.ok(suse12.includes('SUSE:Linux Enterprise Module for Public Cloud 12'))
  assert.ok(suse12.includes('SUSE:Linux Enterprise Server 12 SP5-LTSS'))
  assert.ok(suse12.includes('SUSE:Linux Enterprise Server LTSS Extended Security 12 SP5'))
  const computing = 'SUSE:Linux Enterprise High Performance Computing 15 SP4'
  const modules = withAllReleases(computing)
  for (const one of [`${computing}-ESPOS`, `${computing}-LTSS`, 'SUSE:Linux Enterprise Module for Basesystem 15 SP4'])
    assert.ok(modules.includes(one), one)
  const leap = ['openSUSE:Leap 15.6', 'openSUSE', 'openSUSE:Leap 15.6 NonFree']
  assert.deepEqual(withAllReleases('openSUSE:Leap 15.6'), leap)
  const ubuntu = ['Ubuntu:18.04:LTS', 'Ubuntu', 'Ubuntu:Pro:18.04:LTS']
  assert.deepEqual(withAllReleases('Ubuntu:18.04:LTS'), ubuntu)
  assert.deepEqual(withAllReleases('Ubuntu:Pro:18.04:LTS'), ['Ubuntu:Pro:18.04:LTS', 'Ubuntu'])
  assert.deepEqual(withAllReleases('Rocky Linux:9'), ['Rocky Linux:9', 'Rocky Linux'])
  assert.deepEqual(withAllReleases('PyPI'), ['PyPI'])
})

test('reads the distribution of a package from its package URL', () => {
  const distribution = (url: string) => distributionOf(url)
  assert.deepEqual(distribution('pkg:apk/alpine/musl@1?arch=x86_64&distro=alpine-3.19.1'), {
    id: 'alpine',
    version: '3.19.1',
  })
  assert.deepEqual(distribution('pkg:deb/debian/curl@7?distro=12.5'), { id: 'debian', version: '12.5' })
  assert.deepEqual(distribution('pkg:deb/debian/curl@7?distro=bookworm'), { id: 'debian', version: '12' })
  assert.deepEqual(distribution('pkg:deb/debian/curl@7?distro=sid'), { id: 'debian', version: 'sid' })
  const openEuler = (release: string) =>
    distribution(`pkg:rpm/openeuler/openssl@1.1.1wa-1.${release}?arch=x86_64&distro=openEuler-22.03`)
  assert.deepEqual(openEuler('oe2203sp3'), { id: 'openeuler', version: '22.03-LTS-SP3' })
  assert.deepEqual(openEuler('oe2203'), { id: 'openeuler', version: '22.03-LTS' })
  assert.deepEqual(openEuler('oe1'), { id: 'openeuler', version: '22.03' })
  assert.deepEqual(distribution('pkg:apk/wolfi/curl@7'), { id: 'wolfi', version: '' })
  assert.equal(distribution('pkg:npm/lodash@4'), undefined)
  assert.equal(distribution('pkg:apk/musl@1'), undefined)
})

test('knows the package kind of each distribution ecosystem, with or without a release', () => {
  const kinds = {
    apk: [
      'Alpaquita:23',
      'Alpine:v3.19',
      'BellSoft Hardened Containers:stream',
      'Chainguard',
      'CleanStart',
      'MinimOS',
      'Wolfi',
    ],
    deb: ['Debian:12', 'Echo', 'Ubuntu:Pro:22.04:LTS', 'Docker Hardened Images:Debian:13'],
    rpm: ['AlmaLinux:9', 'Azure Linux:3', 'Red Hat:enterprise_linux:9::appstream', 'SUSE', 'openEuler:22.03-LTS-SP3'],
  }
  for (const [kind, ecosystems] of Object.entries(kinds)) {
    for (const one of ecosystems) assert.deepEqual([one, kindOfEcosystem(one), schemeOf(one)], [one, kind, kind])
  }
  assert.equal(kindOfEcosystem('Docker Hardened Images:Alpine:3.24'), 'apk')
  for (const other of ['npm', 'PyPI', 'Docker Hardened Images', '']) assert.equal(kindOfEcosystem(other), undefined)
})

test('reads the release of Docker Hardened Images from a package URL', () => {
  const url = 'pkg:deb/dhi/coreutils@9.7-3?os_distro=debian&os_name=dhi&os_version=13'
  assert.deepEqual(distributionOf(url), { id: 'dhi', version: '13' })
  const syft = distributionOf('pkg:apk/dhi/coreutils@9.7-r0?arch=x86_64&distro=dhi-3.24')
  assert.deepEqual(syft, { id: 'dhi', version: '3.24' })
})
