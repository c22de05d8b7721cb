import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareVersions } from './order.ts'
import { type Covered, fixesAbove, inRanges, type RangeEvent } from './ranges.ts'

const apk = (one: string, other: string) => compareVersions('apk', one, other)
const deb = (one: string, other: string) => compareVersions('deb', one, other)

// Events, a version, the expected coverage, and the fixed versions above it.
const cases: readonly [events: RangeEvent[], version: string, covered: Covered, fixes: string[]][] = [
  [[{ introduced: '0' }], '1.0-r0', 'yes', []],
  [[{ introduced: '0' }], 'not a version', 'yes', []],
  [[{ introduced: '0' }, { fixed: '1.2-r1' }], '1.2-r0', 'yes', ['1.2-r1']],
  [[{ introduced: '0' }, { fixed: '1.2-r1' }], '1.2-r1', 'no', []],
  [[{ introduced: '0' }, { fixed: '1.2-r1' }], '1.10-r0', 'no', []],
  [[{ fixed: '1.2-r1' }, { introduced: '0' }], '1.1-r0', 'yes', ['1.2-r1']],
  [[{ introduced: '1.1-r0' }, { fixed: '1.2-r0' }], '1.0-r0', 'no', []],
  [[{ introduced: '1.1-r0' }, { fixed: '1.2-r0' }], '1.1-r0', 'yes', ['1.2-r0']],
  [[{ introduced: '0' }, { lastAffected: '1.2-r0' }], '1.2-r0', 'yes', []],
  [[{ introduced: '0' }, { lastAffected: '1.2-r0' }], '1.2-r1', 'no', []],
  // Two ranges, in the wrong order.
  [[{ introduced: '2.0-r0' }, { introduced: '0' }, { fixed: '1.5-r0' }, { fixed: '2.3-r0' }], '1.7-r0', 'no', []],
  [
    [{ introduced: '2.0-r0' }, { introduced: '0' }, { fixed: '1.5-r0' }, { fixed: '2.3-r0' }],
    '2.1-r0',
    'yes',
    ['2.3-r0'],
  ],
  [
    [{ introduced: '2.0-r0' }, { introduced: '0' }, { fixed: '1.5-r0' }, { fixed: '2.3-r0' }],
    '1.4-r9',
    'yes',
    ['1.5-r0'],
  ],
  // A range that begins and ends at the same version is empty.
  [[{ introduced: '1.0-r0' }, { fixed: '1.0-r0' }], '1.0-r0', 'no', []],
  [[{ introduced: '0' }, { limit: '1.0-r0' }], '0.9-r0', 'yes', []],
  [[{ introduced: '0' }, { limit: '1.0-r0' }], '1.0-r0', 'no', []],
  [[{ introduced: '0' }, { limit: '*' }], '7-r0', 'yes', []],
  // An invalid version on either side never counts as unaffected. The fixed version is reported anyway.
  [[{ introduced: '0' }, { fixed: '1.2-r1' }], 'nonsense!', 'unknown', ['1.2-r1']],
  [[{ introduced: '0' }, { fixed: 'nonsense!' }], '1.0-r0', 'unknown', ['nonsense!']],
  [[{ introduced: '0' }, { limit: 'nonsense!' }], '1.0-r0', 'unknown', []],
  [[{ introduced: '1.0-r0' }, { fixed: 'nonsense!' }], '1.0-r0', 'unknown', ['nonsense!']],
  [[{ introduced: '0' }, { limit: 'nonsense!' }, { fixed: '1.2-r1' }], '1.0-r0', 'unknown', ['1.2-r1']],
  // Reports the lowest of several fixed versions above the version.
  [[{ introduced: '0' }, { fixed: '1.3-r0' }, { fixed: '1.2-r0' }, { fixed: '1.1-r0' }], '1.0-r0', 'yes', ['1.1-r0']],
  // Both sides of each boundary.
  [[{ introduced: '1.1-r0' }, { lastAffected: '1.2-r0' }], '1.0-r9', 'no', []],
  [[{ introduced: '1.1-r0' }, { lastAffected: '1.2-r0' }], '1.1-r0', 'yes', []],
  [[{ introduced: '1.1-r0' }, { lastAffected: '1.1-r0' }], '1.1-r0', 'yes', []],
  [[{ introduced: '0' }, { limit: '1.0-r0' }, { limit: '2.0-r0' }], '1.9-r0', 'yes', []],
  [[{ introduced: '0' }, { limit: '1.0-r0' }, { limit: '2.0-r0' }], '2.0-r0', 'no', []],
]

for (const [events, version, covered, fixes] of cases) {
  test(`${version} in ${JSON.stringify(events)}: ${covered}`, () => {
    const ranges = [{ type: 'ECOSYSTEM' as const, events }]
    assert.equal(inRanges(version, ranges, apk), covered)
    assert.deepEqual(fixesAbove(version, ranges, apk), fixes)
  })
}

test('returns the fixes of several ranges once each, lowest first, without ranges that end below the version', () => {
  const until = (introduced: string, fixed: string) => ({
    ...{ type: 'ECOSYSTEM' as const, events: [{ introduced }, { fixed }] },
  })
  const ranges = [until('0', '1.10-r0'), until('0', '1.9-r0'), until('0', '1.9-r0'), until('0', '1.0-r0')]
  assert.deepEqual(fixesAbove('1.1-r0', ranges, apk), ['1.9-r0', '1.10-r0'])
})

test('one matching range is enough, and a range that cannot be compared hides no other', () => {
  const range = (...events: RangeEvent[]) => ({ type: 'ECOSYSTEM' as const, events })
  const broken = range({ introduced: '0' }, { fixed: 'non sense' })
  assert.equal(inRanges('2:1.0-1', [broken, range({ introduced: '1:0' }, { fixed: '2:1.0-2' })], deb), 'yes')
  assert.equal(inRanges('2:1.0-1', [broken, range({ introduced: '3:0' })], deb), 'unknown')
  assert.equal(inRanges('2:1.0-1', [], deb), 'no')
})
