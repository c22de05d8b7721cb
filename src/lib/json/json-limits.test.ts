import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonProblem } from './json-limits.ts'

const none = { depth: 1000, members: 1_000_000 }
const problemOf = (text: string, limits: { depth?: number; members?: number }) =>
  jsonProblem(Buffer.from(text), { ...none, ...limits })

/** Depth and number of members, calculated from the parsed value. */
function sizesOf(value: unknown): { depth: number; members: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, members: 0 }
  const inner = Object.values(value).map(sizesOf)
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    members: inner.reduce((sum, { members }) => sum + members, inner.length),
  }
}

const texts = [
  '{}',
  '[]',
  '0',
  '""',
  '[ \n\t\r]',
  '{ \n\t\r}',
  '[1]',
  '[ 1 , 2 ]',
  '{"a":1}',
  '{"a":[],"b":{},"c":[[]]}',
  ' { "a" : [1, {"b":"}\\"{"}, []] , "c":null}\n',
  '["[[[[", "{{{{", ",,,,"]',
  String.raw`["\\", "\"", "\\\"", "a\\"]`,
  String.raw`{"\",\"":"\\\\","[":"]"}`,
  '["ü€𝄞", {"ключ":[true,false,null]}]',
  // The scanner searches long strings in a different way than short ones.
  ...[30, 31, 32, 33, 34, 95, 96, 97, 98, 99].flatMap((n) => [
    String.raw`["${'x'.repeat(n)}\"[{,", {"${'\\\\'.repeat(n)}":[1]}]`,
    String.raw`["${'x'.repeat(n)}\\", ["${'\\"'.repeat(n)}{,"], "${'x'.repeat(n)}\\\"${'y'.repeat(n)}\\\\\"[{", []]`,
  ]),
  `[${'[],'.repeat(99)}[]]`,
  `${'['.repeat(200)}${']'.repeat(200)}`,
  `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`,
]

test('returns the depth and the number of members of the parsed value', () => {
  for (const text of texts) {
    const { depth, members } = sizesOf(JSON.parse(text))
    assert.equal(problemOf(text, { depth, members }), undefined, text)
    if (depth > 0)
      assert.equal(problemOf(text, { depth: depth - 1 }), `is nested deeper than ${depth - 1} levels`, text)
    if (members === 0) continue
    assert.equal(problemOf(text, { members: members - 1 }), `has more than ${members - 1} members and elements`, text)
  }
})

test('counts the exact size of random values', () => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const strings = ['', '"', '\\', `${'x'.repeat(40)}"[{,${'\\'.repeat(39)}`, '[{,}]', 'é', '\\"', '\u0000']
  const value = (depth: number): unknown => {
    const kind = random(depth > 6 ? 3 : 5)
    if (kind === 0) return strings[random(strings.length)]
    if (kind === 1) return random(1000) / 7 - 50
    if (kind === 2) return null
    const inner = Array.from({ length: random(5) }, () => value(depth + 1))
    return kind === 3 ? inner : Object.fromEntries(inner.map((one, at) => [`${strings[random(7)]}${at}`, one]))
  }
  for (let round = 0; round < 500; round++) {
    const made = value(0)
    const text = JSON.stringify(made, null, random(3))
    const { depth, members } = sizesOf(made)
    assert.equal(problemOf(text, { depth, members }), undefined, text)
    if (depth > 0) assert.notEqual(problemOf(text, { depth: depth - 1 }), undefined, text)
    if (members > 0) assert.notEqual(problemOf(text, { members: members - 1 }), undefined, text)
  }
})

test('scans text that is not JSON to its end, and leaves the error to the parser', () => {
  for (const text of ['', '"', '"\\', '[', '{', '{ ', ']]]]', '}{', 'nonsense', '[1', '\u0000', '"unterminated [[[[']) {
    assert.equal(problemOf(text, { depth: 2, members: 2 }), undefined, text)
  }
  assert.notEqual(problemOf(',,,', { members: 2 }), undefined)
  assert.notEqual(problemOf('[[[', { depth: 2 }), undefined)
})

test('unmatched closing brackets do not allow more depth', () => {
  assert.notEqual(problemOf(`${']'.repeat(10)}${'['.repeat(5)}`, { depth: 2 }), undefined)
})
