import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseUniqueJson } from './unique-json.ts'

test('what JSON.parse reads is read the same', () => {
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

test('a member that is there twice is refused at any depth, however it is spelled', () => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"x":[{"b":1,"c":2,"b":3}]}',
    '{"__proto__":1,"__proto__":2}',
  ]) {
    assert.throws(() => parseUniqueJson(text), /twice/, text)
  }
})

test('what is not JSON is a SyntaxError', () => {
  for (const text of ['', '{', '{"a"}', '[1,]', "{'a':1}"])
    assert.throws(() => parseUniqueJson(text), SyntaxError, text)
})
