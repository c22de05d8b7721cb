import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { type Random, randomFrom } from '../../test/support/random.ts'
import { mavenKey } from './maven.ts'

const qualifiers = ['alpha', 'beta', 'milestone', 'rc', 'snapshot', '', 'sp']

/** The tokens of a version, each with its preceding separator, as the specification defines them. */
function tokensOf(version: string): string[] {
  const separated = version
    .toLowerCase()
    .replace(/(?<=\d)(?=[^\d.-])|(?<=[^\d.-])(?=\d)/g, '-')
    .replace(/(?<=^|[.-])(?=[.-]|$)/g, '0')
  const named = separated
    .replace(/(?<![^.-])a(?=-\d)/g, 'alpha')
    .replace(/(?<![^.-])b(?=-\d)/g, 'beta')
    .replace(/(?<![^.-])m(?=-\d)/g, 'milestone')
    .replace(/(?<![^.-])cr(?![^.-])/g, 'rc')
    .replace(/\.(?=[^\d.-])/g, '-')
  const nulls = named.replace(/(?:(?:^|[.-])(?:0+|ga|final|release))+(?=-|$)/g, '')
  return (
    nulls
      .match(/(?:^|[.-])[^.-]+/g)
      ?.map((token) => (/^[.-]/.test(token) ? token : /^\d/.test(token) ? `.${token}` : `-${token}`)) ?? []
  )
}

/**
 * `.qualifier` = `-qualifier` < `-number` < `.number`, then compared by value. A missing token has the default value of its kind.
 */
function compareTokens(one: string | undefined, two: string | undefined): number {
  if (one === undefined) return two === undefined ? 0 : -compareTokens(two, one)
  if (two === undefined) return compareTokens(one, one[0] === '.' ? '.0' : '-')
  const classOf = (token: string) => (/\d/.test(token) ? (token[0] === '.' ? 2 : 1) : 0)
  if (classOf(one) !== classOf(two)) return classOf(one) - classOf(two)
  if (classOf(one) > 0) return Math.sign(Number(one.slice(1)) - Number(two.slice(1)))
  const rankOf = (token: string): [number, string] => {
    const text = token.slice(1).replace(/^(?:ga|final|release)$/, '')
    const rank = qualifiers.indexOf(text)
    return rank < 0 ? [qualifiers.length, text] : [rank, '']
  }
  const [[rank1, text1], [rank2, text2]] = [rankOf(one), rankOf(two)]
  return rank1 !== rank2 ? Math.sign(rank1 - rank2) : text1 < text2 ? -1 : text1 > text2 ? 1 : 0
}

/** The definition for two versions: compares token by token, and pads the shorter version with empty tokens. */
function compare(one: string, two: string): number {
  const [a, b] = [tokensOf(one), tokensOf(two)]
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const result = compareTokens(a[i], b[i])
    if (result !== 0) return Math.sign(result)
  }
  return 0
}

function randomVersion(random: Random): string {
  const words = [
    '0',
    '1',
    '2',
    '10',
    '007',
    '20210629',
    'alpha',
    'a',
    'b',
    'm',
    'beta',
    'rc',
    'CR',
    'SNAPSHOT',
    'ga',
    'Final',
    'sp',
    'jre',
    'jr',
    'v',
    'RELEASE',
  ]
  const parts = Array.from({ length: 1 + random.below(5) }, (_, i) => {
    const separator = i === 0 ? '' : ['.', '.', '-', ''][random.below(4)]!
    return separator + words[i === 0 ? random.below(4) : random.below(words.length)]!
  })
  return parts.join('')
}

const bySign = (one: string, two: string) => (one < two ? -1 : one > two ? 1 : 0)

test('sorts any two versions as the specification defines', () => {
  const seed = randomInt(2 ** 31)
  const random = randomFrom(seed)
  for (let i = 0; i < 30_000; i++) {
    const [one, two] = [randomVersion(random), randomVersion(random)]
    assert.equal(bySign(mavenKey(one), mavenKey(two)), compare(one, two), `seed ${seed}: ${one} and ${two}`)
  }
})

const ordered = {
  qualifiers:
    '1-alpha2snapshot 1-alpha2 1-alpha-123 1-beta-2 1-beta123 1-m2 1-m11 1-rc 1-cr2 1-rc123 1-SNAPSHOT 1 1-sp 1-sp2 1-sp123 1-abc 1-def 1-pom-1 1-1-snapshot 1-1 1-2 1-123',
  numbers:
    '2.0 2.0.a 2-1 2.0.2 2.0.123 2.1.0 2.1-a 2.1b 2.1-c 2.1-1 2.1.0.1 2.2 2.123 11.a2 11.a11 11.b2 11.b11 11.m2 11.m11 11 11.a 11b 11c 11m',
  libraries:
    '9.4.43.RC0 9.4.43.v20210629 9.4.43.v20210701 9.4.44 20.0-rc1 20.0-SNAPSHOT 20.0 31.1-android 31.1-jre 32.0.0-android 9999.0-empty-to-avoid-conflict',
}

for (const [what, versions] of Object.entries(ordered)) {
  test(`sorts ${what} in the order of Maven`, () => {
    const list = versions.split(' ')
    const keys = list.map(mavenKey)
    assert.deepEqual(keys, keys.toSorted())
    assert.equal(new Set(keys).size, keys.length)
  })
}

test('equal versions have the same key', () => {
  const same = [
    ['1', '1.0', '1.0.0', '1.ga', '1-ga', '1.0.Final', '1-0', '1.', '1-', '1.0.0-0.0.0', '1.0.RELEASE'],
    ['1-alpha1', '1a1', '1.0a1', '1-Alpha-1', '1.0.0.alpha1'],
    ['1.0.0-foo.0.0', '1-foo', '1.foo'],
    ['1-rc2', '1-CR2'],
    ['1.0x1', '1.0-x-1'],
    ['01.002', '1.2'],
  ]
  for (const versions of same) assert.equal(new Set(versions.map(mavenKey)).size, 1, versions.join(' '))
})

test('a qualifier with the name of an Object property is an ordinary word', () => {
  const keys = ['1-constructor', '1-constructora', '1-tostring', '1-valueof'].map(mavenKey)
  assert.deepEqual(keys, keys.toSorted())
})
