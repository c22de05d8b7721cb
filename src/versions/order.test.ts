import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFiles } from '#contents/databases/files.ts'
import { schemeOfKind } from '#contents/ecosystems.ts'
import { fixture } from '../../test/support/fixtures.ts'
import { randomFrom } from '../../test/support/random.ts'
import { compareVersions, type Scheme, schemeOf } from './order.ts'

const sign = (kind: Scheme, one: string, other: string) => Math.sign(compareVersions(kind, one, other)!)

/** Each version sorts before all versions after it in the list. */
function assertOrder(kind: Scheme, versions: readonly string[]): void {
  for (const [i, one] of versions.entries()) {
    for (const [j, other] of versions.entries()) {
      assert.equal(sign(kind, one, other), Math.sign(i - j), `${one} and ${other}`)
    }
  }
}

test('apk: compares numbers, then a letter, suffixes, a hash and the release', () => {
  assertOrder('apk', [
    '0.9',
    '1',
    '1-r0',
    '1-r1',
    '1-r10',
    '1_p',
    '1_p1',
    '1a',
    '1b',
    '1.0',
    '1.0.1',
    '1.1',
    '1.10',
    '2',
    '10',
  ])
  assertOrder('apk', ['1.1.1d-r2', '1.1.1d-r3', '1.1.1k-r0', '1.1.1q-r0', '1.1.1.1', '3.0.7-r0'])
  assertOrder('apk', ['1.2.4-r5', '1.2.4~ab', '1.2.4~ab-r1', '1.2.4~ac', '1.2.4_git20230717-r4', '1.2.5'])
})

test('apk: a pre-release suffix sorts before the release, and other suffixes after it', () => {
  const before = ['1.0_alpha', '1.0_alpha1', '1.0_alpha1-r1', '1.0_beta', '1.0_pre', '1.0_pre2', '1.0_rc', '1.0_rc_p1']
  assertOrder('apk', [...before, '1.0', '1.0-r0', '1.0_cvs', '1.0_svn', '1.0_git', '1.0_hg', '1.0_p', '1.0_p20250101'])
})

test('apk: a number with a leading zero is a fraction, except the first', () => {
  assertOrder('apk', ['1.02', '1.020', '1.03', '1.1', '1.2'])
  assert.equal(sign('apk', '01.1', '1.1'), 0)
  assert.equal(sign('apk', '1.1-r01', '1.1-r1'), 0)
  assert.equal(sign('apk', `1.${'9'.repeat(40)}`, `1.1${'0'.repeat(40)}`), -1)
})

test('deb: compares epoch, then upstream version, then revision', () => {
  assertOrder('deb', ['1.0', '1.0-1', '1.0-1.1', '1.0-2', '1.0-10', '1.1-1', '1.10-1', '2', '1:0.1', '2:0'])
  assertOrder('deb', ['8-20180414-1ubuntu2', '8.3.0-6', '1:8-20180414-1ubuntu2', '1:8.3.0-6'])
  for (const [one, other] of [
    ['1.0', '1.0-0'],
    ['0:1', '1'],
    ['1.00', '1.0'],
  ] as const) {
    assert.equal(sign('deb', one, other), 0, `${one} and ${other}`)
  }
})

test('deb: a tilde sorts before the end, and letters before other characters', () => {
  assertOrder('deb', ['1~~', '1~~a', '1~', '1', '1a', '1b', '1+', '1.'])
  assertOrder('deb', ['6.8.0~rc1-1', '6.8.0-1~bpo12+1', '6.8.0-1', '6.8.0-1+deb12u1', '6.8.0-1+deb12u2', '6.8.0a-1'])
  assertOrder('deb', ['2020a-0+deb10u1', '2020a-0+deb11u1', '2020b-1'])
})

test('sorts semver prereleases before the release, part by part, with missing numbers as zero', () => {
  const parts = ['1.0.0-0', '1.0.0-2', '1.0.0-10', '1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta', '1.0.0-rc.1']
  assertOrder('semver', [...parts, '1.0.0', '1.0.1', '1.2.0', '1.10.0', '2.0.0'])
  const pseudo = ['0.0.0-20190308221718-c2843e01d9a2', '0.0.0-20200622213623-75b288015ac9', '0.1.0']
  assertOrder('semver', pseudo)
  for (const same of ['v1.2.0', '1.2', '1.2.0+incompatible', '1.2.0+build.5'])
    assert.equal(sign('semver', same, '1.2.0'), 0)
  assert.equal(sign('semver', '1', '1.0.0'), 0)
  assert.equal(sign('semver', '1.2-rc.1', '1.2.0'), -1)
})

test('sorts gem prereleases with letters or a dash before the release', () => {
  assertOrder('gem', ['1.0.a', '1.0.beta1', '1.0.pre', '1.0.rc2', '1.0', '1.0.1', '1.2', '1.10'])
  assert.equal(sign('gem', '1-rc1', '1.pre.rc1'), 0)
  assert.equal(sign('gem', '1', '1.0.0'), 0)
  // Numbers of up to 15 digits are compared exactly. Longer numbers are not compared.
  const [digits, more] = ['999999999999998', '999999999999999']
  assert.deepEqual([sign('gem', `1.${digits}`, `1.${more}`), sign('gem', `1.${more}`, `1.${more}`)], [-1, 0])
  for (const longer of [`1.${more}9`, `1${more}.0`, `1.0.a1${more}`]) {
    assert.equal(compareVersions('gem', longer, `1.${more}`), undefined, longer)
    assert.equal(compareVersions('gem', `1.${more}`, longer), undefined, longer)
  }
})

test('each OSV ecosystem with a known order has a scheme, with and without a release', () => {
  const known = { 'Alpine:v3.19': 'apk', Wolfi: 'apk', 'Ubuntu:22.04:LTS': 'deb', 'Debian:12': 'deb', Go: 'semver' }
  const rpm = { 'Red Hat:enterprise_linux:9::baseos': 'rpm', 'openSUSE:Leap 15.5': 'rpm', 'Azure Linux:3': 'rpm' }
  const more = { ...rpm, PyPI: 'pep440', npm: 'semver', 'crates.io': 'semver', Maven: 'maven', RubyGems: 'gem' }
  for (const [ecosystem, scheme] of Object.entries({ ...known, ...more })) assert.equal(schemeOf(ecosystem), scheme)
  for (const unknown of ['', 'Fedora', 'NuGet', 'constructor', 'alpine', ':Alpine'])
    assert.equal(schemeOf(unknown), undefined)
})

test('text that is not a version has no order', () => {
  const notOf = {
    semver: [
      '',
      'a',
      '1.x',
      '1.2.3.4.5 ',
      'latest',
      '1..2',
      `1.2.${'9'.repeat(30)}`,
      '9007199254740993.0.0',
      'git+https',
    ],
    pep440: ['', 'a', '1.0-final', 'trunk', '1.0+', '!1'],
    gem: ['', ' ', 'a', '1.', '1..2', '1 2', `1.${'9'.repeat(17)}`, '1\n'],
  }
  for (const [scheme, wrongs] of Object.entries(notOf) as [Scheme, string[]][]) {
    for (const wrong of wrongs) {
      assert.equal(compareVersions(scheme, wrong, '1.0.0'), undefined, `${scheme} ${wrong}`)
      assert.equal(compareVersions(scheme, '1.0.0', wrong), undefined, `${scheme} ${wrong}`)
    }
  }
  for (const wrong of [
    '',
    'a',
    '1.',
    '.1',
    '1..2',
    '1.0_',
    '1.0_foo',
    '1.0-1',
    '1.0-r',
    '1.0_rc1a',
    '1 ',
    '1\n',
    '1~',
    '1~XY',
    'v1',
    '١',
  ]) {
    assert.equal(compareVersions('apk', wrong, '1'), undefined, wrong)
    assert.equal(compareVersions('apk', '1', wrong), undefined, wrong)
  }
  for (const wrong of ['', ':1', 'a:1', '1:', '1-', '-1', '1:-1', '1 ', '1_0', '1\n', '1/2', 'é']) {
    assert.equal(compareVersions('deb', wrong, '1'), undefined, wrong)
  }
  const long = '1'.repeat(600)
  assert.deepEqual([compareVersions('apk', long, '1'), compareVersions('deb', long, '1')], [undefined, undefined])
})

test('each version of the fixtures is valid and equals itself', () => {
  const images = ['alpine-2016', 'alpine-3.10', 'alpine-3.11', 'alpine-14-packages', 'alpine-2-packages']
  const files = [
    ...images.map((image) => ({ path: 'lib/apk/db/installed', bytes: fixture(`contents/${image}/installed`) })),
    { path: 'var/lib/dpkg/status', bytes: fixture('contents/ubuntu-18.04/status') },
  ]
  const packages = files.flatMap((file) => readFiles([file])!.packages)
  assert.ok(packages.length > 150)
  for (const { kind, version, originVersion } of packages) {
    const scheme = schemeOfKind(kind)
    assert.equal(compareVersions(scheme, version, version), 0, version)
    assert.equal(compareVersions(scheme, originVersion, originVersion), 0, originVersion)
  }
})

test('the order is antisymmetric and transitive', () => {
  const random = randomFrom(18)
  const pieces = {
    apk: ['1', '0', '02', '.', 'a', '_p', '_rc', '~ab', '-r1'],
    deb: ['1', '0', ':', '.', 'a', '~', '+', '-'],
    gem: ['1', '0', '.', 'a', '-', '.rc', '.0'],
    maven: ['1', '0', '.', '-', 'a', '-rc', '.sp', '-snapshot'],
    pep440: ['1', '0', '.', 'a', 'rc', '.post', '.dev', '+ab', '!'],
    rpm: ['1', '0', '.', 'a', '~', '^', '_', '+'],
    semver: ['1', '0', '.1', '.0', '-', 'a', '+', '.2'],
  }
  for (const kind of Object.keys(pieces) as Scheme[]) {
    const made = () =>
      `1${Array.from({ length: random.below(6) }, () => pieces[kind][random.below(pieces[kind].length)]).join('')}`
    const versions = Array.from({ length: 400 }, made).filter(
      (version) => compareVersions(kind, version, version) === 0,
    )
    assert.ok(versions.length > 100)
    for (let round = 0; round < 20_000; round++) {
      const [a, b, c] = [0, 1, 2].map(() => versions[random.below(versions.length)]!) as [string, string, string]
      assert.equal(sign(kind, a, b), -sign(kind, b, a) || 0, `${a} and ${b}`)
      if (sign(kind, a, b) <= 0 && sign(kind, b, c) <= 0) assert.ok(sign(kind, a, c) <= 0, `${kind}: ${a}, ${b}, ${c}`)
    }
  }
})
