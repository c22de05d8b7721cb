import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseYielding } from './parse-yielding.ts'

const spread = <T>(count: number, one: (i: number) => T) => Array.from({ length: count }, (_, i) => one(i))
const words = (count: number) => spread(count, (i) => `${'é"\\{[,'.repeat(i % 40)}${i}`)

const documents: Record<string, string> = {
  'an empty object': '{}',
  'a small list': '[1,null,"a"]',
  'a long list': JSON.stringify(words(5000)),
  'a long list with spaces': ` \n${JSON.stringify(words(3000), null, 2)}\t`,
  'an object with many members': JSON.stringify(Object.fromEntries(words(4000).map((text, i) => [`m${i}${text}`, i]))),
  'large members among small ones': JSON.stringify({
    a: 1,
    b: words(2000),
    c: [],
    d: { e: words(2000), f: {} },
    g: words(1),
  }),
  'deep nesting of large lists': `${'[1,'.repeat(10)}${JSON.stringify(words(3000))}${',2]'.repeat(10)}`,
  'a member that occurs twice': `{"a":1,"b":${JSON.stringify(words(3000))},"a":2,"b":3}`,
  'names like __proto__ and 7': `{"__proto__":{"a":1},"7":0,"b":${JSON.stringify(words(3000))},"__proto__":2,"3":1}`,
  'a large __proto__': `{"b":1, "__proto__" : ${JSON.stringify(words(3000))} }`,
  'a long string': JSON.stringify(['x'.repeat(300_000), '"'.repeat(100_000)]),
}

for (const [title, text] of Object.entries(documents)) {
  test(`parses ${title} like JSON.parse`, async () => {
    const value = await parseYielding(Buffer.from(text))
    assert.deepEqual(value, JSON.parse(text))
    assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)))
  })
}

const long = JSON.stringify(words(3000))
const invalid: Record<string, string> = {
  'an element that is missing': `[${long},,1]`,
  'an element that is missing at the end': `[${long},]`,
  'an element that is missing at the start': `[,${long}]`,
  'a member that is missing': `{"a":${long},,"b":1}`,
  'a colon that is missing': `{"a"${long}}`,
  'a name that is missing': `{:${long}}`,
  'a name that is no string': `{1:${long}}`,
  'two values without a comma': `[${long}${long}]`,
  'brackets of different kinds': `[${long.slice(0, -1)}},1]`,
  'brackets of different kinds that match as a whole': `[[1},${long},[2}]`,
  'a text after the end': `${long}1`,
  'a second value': `${long}${long}`,
  'a bracket that is missing': `[${long}`,
  'a string without an end': `[${long},"a`,
  'a bracket in a string without an end': `{"a":${long},"b":"}`,
  'a byte order mark in the middle': `[${long},\uFEFF1]`,
}

for (const [title, text] of Object.entries(invalid)) {
  test(`refuses ${title} with the error of JSON.parse`, async () => {
    const expected = (() => {
      try {
        JSON.parse(text)
      } catch (error) {
        return error as Error
      }
      throw new Error('the text is valid')
    })()
    await assert.rejects(parseYielding(Buffer.from(text)), { name: 'SyntaxError', message: expected.message })
  })
}

test('refuses bytes that are not UTF-8', async () => {
  const bytes = Buffer.from(`[${long},"a"]`)
  bytes[bytes.length - 3] = 0xff
  await assert.rejects(parseYielding(bytes), TypeError)
})

test('parses several texts one after the other', async () => {
  const texts = spread(8, (i) => JSON.stringify([i, ...words(2000)]))
  const values = await Promise.all(texts.map((text) => parseYielding(Buffer.from(text))))
  assert.deepEqual(
    values.map((value) => (value as unknown[])[0]),
    [0, 1, 2, 3, 4, 5, 6, 7],
  )
})

test('does not parse a large member that is not needed', async () => {
  const text = JSON.stringify({ a: { b: words(3000), c: words(3000), d: 1 }, c: words(1) })
  const value = await parseYielding(Buffer.from(text), (path) => path.join('.') !== 'a.c')
  assert.deepEqual(value, { a: { b: words(3000), c: null, d: 1 }, c: words(1) })
})
