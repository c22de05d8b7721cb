import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from '../../test/support/fixtures.ts'
import { readOsRelease } from './databases/os-release.ts'
import { ecosystemOf, isSameDistribution } from './ecosystems.ts'
import { distributionOf, packageOf, packageUrl } from './package-url.ts'
import type { PackageKind } from './packages.ts'

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
  ['deb', 'debian', 'sid', ''],
  ['deb', 'ubuntu', '22.04', 'Ubuntu:22.04:LTS'],
  ['deb', 'ubuntu', '23.10', 'Ubuntu:23.10'],
  ['deb', 'ubuntu', '23.04', 'Ubuntu:23.04'],
  ['deb', 'Ubuntu', '24.04', 'Ubuntu:24.04:LTS'],
  ['deb', 'raspbian', '11', ''],
  ['pypi', 'alpine', '3.19', 'PyPI'],
  ['npm', '', '', 'npm'],
  ['gem', '', '', 'RubyGems'],
  ['maven', '', '', 'Maven'],
  ['golang', '', '', 'Go'],
  ['cargo', '', '', 'crates.io'],
]

for (const [kind, id, version, ecosystem] of distributions) {
  test(`${kind} packages in ${id || 'any distribution'} ${version} are of the ecosystem "${ecosystem}"`, () => {
    assert.equal(ecosystemOf(kind, { id, version }), ecosystem)
  })
}

test('two numbers of one release are the same distribution, and two releases or names are not', () => {
  const same = (...[one, other]: [[string, string], [string, string]]) =>
    isSameDistribution({ id: one[0], version: one[1] }, { id: other[0], version: other[1] })
  assert.ok(same(['alpine', '3.19.1'], ['alpine', '3.19.4']))
  assert.ok(same(['debian', '12'], ['debian', '12.5']))
  assert.ok(same(['constructor', '1'], ['constructor', '1']))
  assert.ok(!same(['alpine', '3.19.1'], ['alpine', '3.20.1']))
  assert.ok(!same(['wolfi', '2023'], ['chainguard', '2023']))
  // Nothing says what they have in common.
  assert.ok(!same(['constructor', '1'], ['constructor', '2']))
})

test('the releases that real images say have their ecosystem', () => {
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
  test(`${url} names the package as its advisories do, and back`, () => {
    const found = { kind, name, version, origin: name, originVersion: version, arch: '' }
    assert.deepEqual(packageOf(url), found)
    assert.equal(packageUrl(found, 'alpine'), url)
  })
}

test('names of Python are normalised; what says no version, or is of a kind that we do not compare, is no package', () => {
  assert.equal(packageOf('pkg:pypi/Zope.Interface@6.0')?.name, 'zope-interface')
  for (const url of ['pkg:pypi/django', 'pkg:npm/@1', 'pkg:rpm/fedora/curl@7', 'pkg:generic/x@1', 'x']) {
    assert.equal(packageOf(url), undefined, url)
  }
})

test('a package URL tells the distribution of its package', () => {
  const said = (url: string) => distributionOf(url)
  assert.deepEqual(said('pkg:apk/alpine/musl@1?arch=x86_64&distro=alpine-3.19.1'), { id: 'alpine', version: '3.19.1' })
  assert.deepEqual(said('pkg:deb/debian/curl@7?distro=12.5'), { id: 'debian', version: '12.5' })
  assert.deepEqual(said('pkg:deb/debian/curl@7?distro=bookworm'), { id: 'debian', version: '' })
  assert.deepEqual(said('pkg:apk/wolfi/curl@7'), { id: 'wolfi', version: '' })
  assert.equal(said('pkg:npm/lodash@4'), undefined)
  assert.equal(said('pkg:apk/musl@1'), undefined)
})
