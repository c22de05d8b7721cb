import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareRpm } from './rpm.ts'

// Pairs in order, then pairs of equal versions: the cases of rpm's own tests, rearranged.
const lower: [string, string][] = [
  ['1.0', '2.0'],
  ['2.0', '2.0.1'],
  ['2.0.1', '2.0.1a'],
  ['5.5p1', '5.5p2'],
  ['5.5p1', '5.5p10'],
  ['10xyz', '10.1xyz'],
  ['xyz10', 'xyz10.1'],
  ['xyz.4', '8'],
  ['xyz.4', '2'],
  ['5.5p2', '5.6p1'],
  ['5.6p1', '6.5p1'],
  ['6.0', '6.0.rc1'],
  ['10a1', '10b2'],
  ['10a2', '10b2'],
  ['1.0a', '1.0aa'],
  ['10.0001', '10.0039'],
  ['4.999.9', '5.0'],
  ['20101121', '20101122'],
  ['1.0~rc1', '1.0'],
  ['1.0~rc1', '1.0~rc2'],
  ['1.0~rc1~git123', '1.0~rc1'],
  ['1.0', '1.0^'],
  ['1.0', '1.0^git1'],
  ['1.0^git1', '1.0^git2'],
  ['1.0^git1', '1.01'],
  ['1.0^20160101', '1.0.1'],
  ['1.0^20160101^git1', '1.0^20160102'],
  ['1.0~rc1', '1.0~rc1^git1'],
  ['1.0^git1~pre', '1.0^git1'],
  ['1b.fc17', '1.fc17'],
  ['1.fc17', '1g.fc17'],
  ['2a', '2.0'],
  ['1.0~', '1.0'],
  ['99999999999999999998', '99999999999999999999'],
]
const equal: [string, string][] = [
  ['2.0.1a', '2.0.1a'],
  ['10.0001', '10.1'],
  ['2_0', '2.0'],
  ['a+', 'a_'],
  ['+a', '_a'],
  ['+_', '_+'],
  ['+', '_'],
  ['1.0~rc1^git1', '1.0~rc1^git1'],
  ['1.1.α', '1.1.β'],
  ['1.0.', '1.0'],
]
const evrs: [string, string][] = [
  ['1.0-1', '1:0.1-1'],
  ['9:1-1', '10:1-1'],
  ['1:1.1.1k-7.el8_6', '1:1.1.1k-9.el8_7'],
  ['3.0.7-6.el9_2', '3.0.7-16.el9_2'],
  ['1.0-1.el8', '1.0-1.el9'],
  ['1:18.14.2-2.module+el8.7.0+18111+f6ed2e6a', '1:18.14.2-3.module+el8.7.0+18445+9493b6ea'],
  ['5.1.8-6.el9~bootstrap', '5.1.8-6.el9'],
  ['1.0-1', '1.1'],
]

for (const [one, other] of [...lower, ...evrs]) {
  test(`${one} sorts before ${other}`, () => {
    assert.ok(compareRpm(one, other)! < 0)
    assert.ok(compareRpm(other, one)! > 0)
  })
}

test('treats versions as equal that differ only in the separators of numbers and words', () => {
  for (const [one, other] of equal) {
    assert.equal(compareRpm(one, other), 0, `${one} ${other}`)
    assert.equal(compareRpm(other, one), 0, `${other} ${one}`)
  }
})

test('a missing epoch means 0, and releases are compared only if both versions have one', () => {
  assert.equal(compareRpm('0:1.0-1', '1.0-1'), 0)
  assert.equal(compareRpm('1.0', '1.0-5'), 0)
  assert.equal(compareRpm('1:1.0-5', '1:1.0'), 0)
})

test('text that is not a version cannot be compared', () => {
  for (const wrong of ['', '1-2-3', 'a:1-1', '1 0', '-1', '1:', '1:2:3']) {
    assert.equal(compareRpm(wrong, '1'), undefined, wrong)
    assert.equal(compareRpm('1', wrong), undefined, wrong)
  }
})
