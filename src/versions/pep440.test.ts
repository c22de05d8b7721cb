import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type Random, randomFrom } from '../../test/support/random.ts'
import { localLabel, pep440Key } from './pep440.ts'

/** Parts of a version in PEP 440. A missing part is undefined. */
type Version = {
  epoch: number
  release: number[]
  pre: [phase: 'a' | 'b' | 'rc', number: number] | undefined
  post: number | undefined
  dev: number | undefined
  local: (string | number)[]
}

const sign = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)

/** The definition for two versions, clause by clause. */
function compare(one: Version, two: Version): number {
  const release = Math.max(one.release.length, two.release.length)
  const preOf = ({ pre, post, dev }: Version): [string, number] => {
    if (pre) return pre
    return post === undefined && dev !== undefined ? ['', 0] : ['z', 0]
  }
  const [pre1, pre2] = [preOf(one), preOf(two)]
  const locals = Array.from({ length: Math.max(one.local.length, two.local.length) }, (_, i) => {
    const [a, b] = [one.local[i], two.local[i]]
    if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1
    return typeof a === typeof b ? sign(a, b) : typeof a === 'number' ? 1 : -1
  })
  const clauses = [
    sign(one.epoch, two.epoch),
    ...Array.from({ length: release }, (_, i) => sign(one.release[i] ?? 0, two.release[i] ?? 0)),
    sign(pre1[0], pre2[0]),
    sign(pre1[1], pre2[1]),
    sign(one.post ?? -1, two.post ?? -1),
    sign(one.dev ?? Number.POSITIVE_INFINITY, two.dev ?? Number.POSITIVE_INFINITY),
    ...locals,
  ]
  return clauses.find((result) => result !== 0) ?? 0
}

/** Uses few values, so that many versions differ in only one part. */
function randomVersion(random: Random): Version {
  const number = () => [0, 1, 2, 9, 10, 11, 99, 100, 20241231][random.below(9)]!
  const maybe = <T>(value: T): T | undefined => (random.below(3) === 0 ? value : undefined)
  return {
    epoch: random.below(8) === 0 ? 1 : 0,
    release: Array.from({ length: 1 + random.below(4) }, number),
    pre: maybe([(['a', 'b', 'rc'] as const)[random.below(3)]!, number()]),
    post: maybe(number()),
    dev: maybe(number()),
    local:
      maybe(Array.from({ length: 1 + random.below(3) }, () => [number(), 'ab', 'abc', 'cu121'][random.below(4)]!)) ??
      [],
  }
}

/** Returns one of the many spellings of the version. */
function spelled({ epoch, release, pre, post, dev, local }: Version, random: Random): string {
  const one = (...of: string[]) => of[random.below(of.length)]!
  const separator = () => one('', '.', '-', '_')
  const numbered = (word: string, number: number) =>
    `${separator()}${word}${number === 0 && random.below(2) === 0 ? '' : separator() + one('', '0') + number}`
  const phases = { a: ['a', 'alpha', 'A'], b: ['b', 'Beta'], rc: ['rc', 'c', 'pre', 'preview', 'RC'] }
  const before = pre ? numbered(one(...phases[pre[0]]), pre[1]) : ''
  // After a phase without a number, as in 1.0a-2, a number belongs to the phase.
  const isShort = random.below(4) === 0 && /^$|\d$/.test(before)
  const text = [
    one('', 'v') + (epoch === 0 ? '' : `${epoch}!`) + release.join('.'),
    before,
    post === undefined ? '' : isShort ? `-${post}` : numbered(one('post', 'rev', 'r'), post),
    dev === undefined ? '' : numbered('dev', dev),
    local.length === 0 ? '' : `+${local.join(one('.', '-', '_'))}`,
  ]
  return text.join('')
}

test('sorts any two versions as PEP 440 defines, in each spelling', () => {
  const seed = randomInt(2 ** 31)
  const random = randomFrom(seed)
  for (let i = 0; i < 20_000; i++) {
    const [one, two] = [randomVersion(random), randomVersion(random)]
    const [a, b] = [spelled(one, random), spelled(two, random)]
    assert.equal(sign(pep440Key(a), pep440Key(b)), compare(one, two), `seed ${seed}: ${a} and ${b}`)
  }
})

test('sorts the example of the specification correctly', () => {
  const ordered =
    '1.dev0 1.0.dev456 1.0a1 1.0a2.dev456 1.0a12.dev456 1.0a12 1.0b1.dev456 1.0b2 1.0b2.post345.dev456 1.0b2.post345 1.0rc1.dev456 1.0rc1 1.0 1.0+abc.5 1.0+abc.7 1.0+5 1.0.post456.dev34 1.0.post456 1.0.15 1.1.dev1'
  const keys = ordered.split(' ').map(pep440Key)
  assert.deepEqual(keys, keys.toSorted())
  assert.equal(new Set(keys).size, keys.length)
})

test('equal versions have the same key', () => {
  const same = [
    ['1', '1.0', '1.0.0', 'v1', '0!1'],
    ['1.0rc1', '1.0-c1', '1.0.preview_1', '1rc01'],
    ['1.0-1', '1.0.post1', '1.0.r1'],
    ['1.0+ubuntu-1', '1.0+ubuntu.1', '1.0+UBUNTU_01'],
  ]
  for (const versions of same) assert.equal(new Set(versions.map(pep440Key)).size, 1, versions.join(' '))
})

test('keeps lists of real versions in their PEP 440 order', () => {
  type Lists = { packages: { name: string; versions: string[] }[] }
  const file = new URL('../../test/data/python-version-lists.json.gz', import.meta.url)
  const { packages } = JSON.parse(gunzipSync(readFileSync(file)).toString()) as Lists
  let equal = 0
  for (const { name, versions } of packages) {
    const keys = versions.map(pep440Key)
    assert.deepEqual(keys, keys.toSorted(), name)
    equal += keys.length - new Set(keys).size
  }
  assert.equal(equal, 13) // such as 0.1.4 and 0.1.4.0
  assert.equal(packages.flatMap(({ versions }) => versions).length, 35_302)
})

test('sorts numbers of any length as numbers', () => {
  const numbers = [
    '0',
    '9',
    '10',
    '9'.repeat(59),
    '9'.repeat(60),
    `1${'0'.repeat(60)}`,
    '9'.repeat(61),
    '9'.repeat(120),
  ]
  const keys = [
    '1.dev',
    ...numbers.map((number) => `1.dev${number}`).slice(1),
    '1',
    ...numbers.slice(1).map((n) => `1.${n}`),
  ].map(pep440Key)
  assert.deepEqual(keys, keys.toSorted())
})

test('sorts text that is not a version first, in byte order', () => {
  const odd = ['-class-', '0.7.4.svn', '2.0.0-final', 'A3', 'a3', 'constructor', 'trunk']
  const keys = [...odd, '0!0.dev0'].map(pep440Key)
  assert.deepEqual(keys, keys.toSorted())
  assert.equal(new Set(keys).size, keys.length)
})

test('finds the local label of a version', () => {
  assert.equal(localLabel('2.1.0+cu121'), 'cu121')
  assert.equal(localLabel('2.1.0.POST1+CPU'), 'cpu')
  assert.equal(localLabel('2.1.0'), '')
  assert.equal(localLabel('not a version'), '')
})
