import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { compareVersions, type Scheme } from './order.ts'

/** Comparisons by the tools of the package managers: two versions in each line, and `<`, `=` or `>` between them. */
function* vectors(ecosystem: string) {
  const file = new URL(`../../test/data/versions/${ecosystem}.txt.gz`, import.meta.url)
  for (const line of gunzipSync(readFileSync(file)).toString().split('\n')) {
    const [, one, sign, other] = /^(\S+) ([<=>]) (\S+)$/.exec(line) ?? []
    if (one !== undefined)
      yield { line, one, other: other!, sign: { '<': -1, '=': 0, '>': 1 }[sign as '<' | '=' | '>'] }
  }
}

/**
 * Unlike the specification, Maven's implementation counts the separator before a qualifier. So its order is circular in some
 * cases (see `mavenKey`); our order is not.
 */
const byImplementation = [
  '1.0.0-RC16 < 1.0.0.RC8-beta',
  '1.0.0-gradle-rework-beta3 < 1.0.0.RC7-3',
  '1.0.0rc0 < 1.0.beta8',
  '1.1.0-01-glassfish < 1.1.0.Beta1',
  '1.1.31.sec10 < 1.1.31_noneautotype',
  '1.1.34.sec10 < 1.1.34_noneautotype',
  '1.1.46.sec10 < 1.1.46_noneautotype',
  '1.2.31.sec10 < 1.2.31_noneautotype',
  '1.2.48.sec10 < 1.2.48_noneautotype',
  '1.2.50.sec10 < 1.2.50_noneautotype',
  '1.2.54.sec10 < 1.2.54_noneautotype',
  '1.2.57.sec10 < 1.2.57_noneautotype',
  '1.2.60.sec10 < 1.2.60_noneautotype',
  '1.2.67.sec10 < 1.2.67_noneautotype',
  '1.2.8.sec10_noneautotype < 1.2.8_noneautotype',
  '1.5.9.RC1 < 1.5.9-RC0',
  '2.9.0-1 < 2.9.0.RC1',
  '3.5.0-CR-2 < 3.5.0.Beta-1',
  '3.6.2.FL.20090615 < 3.6.2-FL-2009-05-11',
  '6.1.12.rc5 < 6.1.12rc1',
]

const expected: [ecosystem: string, scheme: Scheme, right: number, noVersion: number, otherwise: string[]][] = [
  ['alpine', 'apk', 13_921, 58, []],
  ['debian', 'deb', 14_442, 0, []],
  ['maven', 'maven', 14_732, 0, byImplementation],
  ['pypi', 'pep440', 12_306, 69, []],
  ['rubygems', 'gem', 4_098, 0, []],
]

for (const [ecosystem, scheme, right, noVersion, otherwise] of expected) {
  test(`${ecosystem}: real versions sort as the tools of the ecosystem sort them`, () => {
    const counts = { right: 0, noVersion: 0 }
    const wrong: string[] = []
    for (const { line, one, other, sign } of vectors(ecosystem)) {
      const order = compareVersions(scheme, one, other)
      if (order === undefined) counts.noVersion++
      else if (Math.sign(order) === sign) counts.right++
      else wrong.push(line)
    }
    assert.deepEqual(wrong.sort(), otherwise)
    assert.deepEqual(counts, { right, noVersion })
  })
}
