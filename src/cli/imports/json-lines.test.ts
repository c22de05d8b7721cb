import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lineIn, linesOf } from './json-lines.ts'

test('finds every value of a JSON text on the line where the value starts', () => {
  const text = `
{ "a" : [ 1,
    {"b c": "x\\"}\\n{", "d": null },
  [], [
   [ true ] ] ],
  "\\u0065":
     {} , "f": -1.5e3
}`
  const expected = {
    '': 2,
    a: 2,
    'a[0]': 2,
    'a[1]': 3,
    'a[1].b c': 3,
    'a[1].d': 3,
    'a[2]': 4,
    'a[3]': 4,
    'a[3][0]': 5,
    'a[3][0][0]': 5,
    e: 7,
    f: 7,
  }
  assert.deepEqual(Object.fromEntries(linesOf(text)), expected)
  for (const one of ['7', '"x"', ' [ ] ', '{}']) assert.deepEqual([...linesOf(one).keys()], [''])
})

test('gives a missing value the line of the nearest existing value around it', () => {
  const lines = linesOf('{\n"a": [\n{"b": 1}\n]\n}')
  const expected = { 'a[0].b': 3, 'a[0].c': 3, 'a[0].c[2].d': 3, 'a[7]': 2, 'a[7].b': 2, z: 1, '': 1 }
  for (const [path, line] of Object.entries(expected)) assert.equal(lineIn(lines, path), line, path)
})
