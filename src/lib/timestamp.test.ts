import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTimestamp, timestamp, toIso } from './timestamp.ts'

const texts = [
  '1970-01-01T00:00:00.000Z',
  '2026-08-01T12:34:56.789Z',
  '1969-12-31T23:59:59.999Z',
  '0001-01-01T00:00:00.000Z',
  '0099-02-28T01:02:03.004Z',
  '9999-12-31T23:59:59.999Z',
]

test('converts between the text, seconds and nanoseconds of a time', () => {
  for (const iso of texts) {
    const { seconds, nanos } = timestamp(iso)
    assert.equal(toIso({ seconds, nanos }), iso)
    assert.deepEqual(parseTimestamp(iso), { seconds, nanos })
  }
})

test('reads offsets and fractions of any length', () => {
  const cases: [string, string, number][] = [
    ['2026-08-01T12:00:00Z', '2026-08-01T12:00:00.000Z', 0],
    ['2026-08-01t12:00:00z', '2026-08-01T12:00:00.000Z', 0],
    ['2026-08-01T12:00:00.1Z', '2026-08-01T12:00:00.100Z', 100_000_000],
    ['2026-08-01T12:00:00.123456789Z', '2026-08-01T12:00:00.123Z', 123_456_789],
    ['2026-08-01T12:00:00+02:30', '2026-08-01T09:30:00.000Z', 0],
    ['2026-08-01T12:00:00-05:00', '2026-08-01T17:00:00.000Z', 0],
    ['2024-02-29T23:59:59-23:59', '2024-03-01T23:58:59.000Z', 0],
  ]
  for (const [text, iso, nanos] of cases) {
    const instant = parseTimestamp(text)
    assert.ok(instant, text)
    assert.equal(toIso(instant), iso)
    assert.equal(instant.nanos, nanos)
  }
})

test('refuses text that is not a time in the years 0001 to 9999', () => {
  const bad = [
    '',
    '2026-08-01',
    '2026-08-01 12:00:00Z',
    '2026-08-01T12:00:00',
    '2026-8-1T12:00:00Z',
    '2026-08-01T12:00:00.Z',
    '2026-08-01T12:00:00.1234567890Z',
    '2026-08-01T24:00:00Z',
    '2026-08-01T12:60:00Z',
    '2026-08-01T12:00:60Z',
    '2026-02-29T12:00:00Z',
    '2026-00-10T12:00:00Z',
    '2026-13-10T12:00:00Z',
    '2026-04-31T12:00:00Z',
    '2026-04-00T12:00:00Z',
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '2026-08-01T12:00:00+24:00',
    '2026-08-01T12:00:00+0200',
    '+002026-08-01T12:00:00Z',
    ' 2026-08-01T12:00:00Z',
    '2026-08-01T12:00:00Z\n',
    '２026-08-01T12:00:00Z',
  ]
  for (const text of bad) assert.equal(parseTimestamp(text), undefined, JSON.stringify(text))
})

test('a time out of range becomes the nearest valid time', () => {
  assert.equal(toIso({ seconds: 2n ** 63n - 1n, nanos: 0 }), '9999-12-31T23:59:59.999Z')
  assert.equal(toIso({ seconds: -(2n ** 63n), nanos: 0 }), '0001-01-01T00:00:00.000Z')
  assert.equal(toIso({ seconds: 0n, nanos: 2_000_000_000 }), '1970-01-01T00:00:00.999Z')
  assert.equal(toIso({ seconds: 0n, nanos: -1 }), '1970-01-01T00:00:00.000Z')
})
