import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonText, plain } from './plain-text.ts'

const invisible = [
  ...['\u007f', '\u0085', '\u009b2J', '\u00ad', '\u061c', '\u200b', '\u200d', '\u200e', '\u2028', '\u2029'],
  ...['\u202e', '\u2060', '\u2066', '\ufeff', '\u{e0001}', '\u{1d173}', '\ufff9'],
]

test('JSON text escapes control characters and characters without width, and keeps the value', () => {
  for (const text of invisible) {
    const value = { [`name${text}`]: [`a${text}b`, 'é日本👍'] }
    for (const indent of [undefined, 2]) {
      const json = jsonText(value, indent)
      assert.deepEqual(JSON.parse(json), value)
      assert.doesNotMatch(json.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\u2028\u2029]/u)
      assert.ok(json.includes('é日本👍'))
    }
  }
})

test('JSON text escapes a character outside the basic plane as two units', () => {
  assert.equal(jsonText('\u{e0001}'), '"\\udb40\\udc01"')
})

test('plain text has no token, and stays as it is otherwise', () => {
  for (const [text, shown] of [
    ['no: eyJh.eyJz.c2ln (401)', 'no: [token] (401)'],
    ['a=xeyJeyJ.b', 'a=x[token]'],
    ['a.eyJ.b eyJh..c eyJh', 'a.eyJ.b eyJh..c eyJh'],
    ['eyJ.eyJh.z.', 'eyJ.[token]'],
    ['\u001b[2Ja\u202e', '[2Ja'],
  ] as const) {
    assert.equal(plain(text), shown)
  }
})
