import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFiles } from '#contents/files.ts'
import { fixture } from '../../test/support/fixtures.ts'
import { randomFrom } from '../../test/support/random.ts'
import { compareVersions } from './order.ts'

type Kind = 'apk' | 'deb'
const sign = (kind: Kind, one: string, other: string) => Math.sign(compareVersions(kind, one, other)!)

/** Every one is before all that follow it. */
function assertOrder(kind: Kind, versions: readonly string[]): void {
  for (const [i, one] of versions.entries()) {
    for (const [j, other] of versions.entries()) {
      assert.equal(sign(kind, one, other), Math.sign(i - j), `${one} and ${other}`)
    }
  }
}

test('apk: numbers, then a letter, then suffixes, a hash and the release', () => {
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

test('apk: the suffix of a release to come is before the release, any other after it', () => {
  const before = ['1.0_alpha', '1.0_alpha1', '1.0_alpha1-r1', '1.0_beta', '1.0_pre', '1.0_pre2', '1.0_rc', '1.0_rc_p1']
  assertOrder('apk', [...before, '1.0', '1.0-r0', '1.0_cvs', '1.0_svn', '1.0_git', '1.0_hg', '1.0_p', '1.0_p20250101'])
})

test('apk: a number with a leading zero is a fraction, except the first', () => {
  assertOrder('apk', ['1.02', '1.020', '1.03', '1.1', '1.2'])
  assert.equal(sign('apk', '01.1', '1.1'), 0)
  assert.equal(sign('apk', '1.1-r01', '1.1-r1'), 0)
  assert.equal(sign('apk', `1.${'9'.repeat(40)}`, `1.1${'0'.repeat(40)}`), -1)
})

test('deb: epoch, then upstream version, then revision', () => {
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

test('deb: a tilde is before the end, letters are before other marks', () => {
  assertOrder('deb', ['1~~', '1~~a', '1~', '1', '1a', '1b', '1+', '1.'])
  assertOrder('deb', ['6.8.0~rc1-1', '6.8.0-1~bpo12+1', '6.8.0-1', '6.8.0-1+deb12u1', '6.8.0-1+deb12u2', '6.8.0a-1'])
  assertOrder('deb', ['2020a-0+deb10u1', '2020a-0+deb11u1', '2020b-1'])
})

test('what is not a version has no order', () => {
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

test('every version of the fixtures is a version and equals itself', () => {
  const images = ['alpine-2016', 'alpine-3.10', 'alpine-3.11', 'alpine-14-packages', 'alpine-2-packages']
  const files = [
    ...images.map((image) => ({ path: 'lib/apk/db/installed', bytes: fixture(`contents/${image}/installed`) })),
    { path: 'var/lib/dpkg/status', bytes: fixture('contents/ubuntu-18.04/status') },
  ]
  const packages = files.flatMap((file) => readFiles([file])!.packages)
  assert.ok(packages.length > 150)
  for (const { kind, version, originVersion } of packages) {
    assert.equal(compareVersions(kind, version, version), 0, version)
    assert.equal(compareVersions(kind, originVersion, originVersion), 0, originVersion)
  }
})

test('the order is total: opposite when turned round, and the same through a third', () => {
  const random = randomFrom(18)
  const pieces = {
    apk: ['1', '0', '02', '.', 'a', '_p', '_rc', '~ab', '-r1'],
    deb: ['1', '0', ':', '.', 'a', '~', '+', '-'],
  }
  for (const kind of ['apk', 'deb'] as const) {
    const made = () =>
      `1${Array.from({ length: random.below(6) }, () => pieces[kind][random.below(pieces[kind].length)]).join('')}`
    const versions = Array.from({ length: 400 }, made).filter(
      (version) => compareVersions(kind, version, version) === 0,
    )
    assert.ok(versions.length > 100)
    for (let round = 0; round < 20_000; round++) {
      const [a, b, c] = [0, 1, 2].map(() => versions[random.below(versions.length)]!) as [string, string, string]
      assert.equal(sign(kind, a, b), -sign(kind, b, a) || 0, `${a} and ${b}`)
      if (sign(kind, a, b) <= 0 && sign(kind, b, c) <= 0) assert.ok(sign(kind, a, c) <= 0, `${a}, ${b}, ${c}`)
    }
  }
})
