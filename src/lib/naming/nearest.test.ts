import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from './nearest.ts'

test('suggests the only nearest word for a word with up to two typos', () => {
  const known = ['LISTEN', 'LOG_LEVEL', 'URL', 'DATA', 'DRAIN']
  for (const [given, meant] of [
    ['LISTN', 'LISTEN'],
    ['LITSEN', 'LISTEN'],
    ['LISTENN', 'LISTEN'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['LISTEN', 'LISTEN'],
    ['LOGLEVL', 'LOG_LEVEL'],
    ['LSTN', 'LISTEN'],
    ['LTN', undefined],
    ['', undefined],
    ['x'.repeat(100_000), undefined],
  ] as const) {
    assert.equal(nearest(given, known), meant, given)
  }
  // Two names at the same distance are not a clear match.
  assert.equal(nearest('CAT', ['BAT', 'HAT']), undefined)
})
