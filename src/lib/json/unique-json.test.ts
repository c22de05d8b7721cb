import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseUniqueJson, repeatedMember } from './unique-json.ts'

test('reads valid JSON exactly as JSON.parse does', () => {
  for (const text of [
    '{}',
    ' { "a" : [1, {"b":"}\\"{"}, []] , "c":null}\n',
    '[]',
    '"x"',
    '-1.5e3',
    'true',
    '{"a":{"a":1}}',
    '[{"a":1},{"a":2}]',
  ]) {
    assert.deepEqual(parseUniqueJson(text), JSON.parse(text), text)
  }
})

test('refuses a duplicate member at any depth, in each spelling', () => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"x":[{"b":1,"c":2,"b":3}]}',
    '{"__proto__":1,"__proto__":2}',
  ]) {
    assert.throws(() => parseUniqueJson(text), /twice/, text)
  }
})

test('throws a SyntaxError for text that is not JSON', () => {
  for (const text of ['', '{', '{"a"}', '[1,]', "{'a':1}"])
    assert.throws(() => parseUniqueJson(text), SyntaxError, text)
})

test('refuses deep nesting before it can exhaust the stack', () => {
  const nested = (depth: number, open: string, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`
  assert.deepEqual(parseUniqueJson(nested(255, '[', ']')), JSON.parse(nested(255, '[', ']')))
  for (const text of [nested(256, '[', ']'), nested(100_000, '[', ']'), nested(300, '{"a":', '}')]) {
    assert.throws(() => parseUniqueJson(text), SyntaxError)
  }
  // The depth counts, not the number of values.
  const wide = `[${Array.from({ length: 10_000 }, () => '[{"a":[]}]').join(',')}]`
  assert.deepEqual(parseUniqueJson(wide), JSON.parse(wide))
})

test('finds a repeated member that the parsed value has lost', () => {
  const check = (text: string) => repeatedMember(Buffer.from(text), JSON.parse(text))
  for (const text of ['{"a":1,"a":1}', '[{"é":{}},{"x":[1,{"\\u00e9":1,"é":2}]}]'])
    assert.match(check(text)!, /^is ambiguous: the member .* occurs twice$/, text)
  for (const text of ['{}', '[]', '""', '{"a":{"a":[{"a":1},{"a":1}]},"b":[ ]}'])
    assert.equal(check(text), undefined, text)
})
