import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, fromBinary, fromJson, toBinary } from '@bufbuild/protobuf'
import { ValueSchema } from '@bufbuild/protobuf/wkt'
import { CheckedPolicySchema } from '#gen/pinfold/control/scanning/v1/policy_checks_pb.ts'
import { AppError } from '#lib/errors.ts'
import { readJson } from './json-read.ts'
import { readValue, writeValue } from './json-values.ts'
import { jsonText } from './json-write.ts'

const texts = [
  'null',
  'true',
  'false',
  '0',
  '-1.5',
  '1e+21',
  '""',
  '"é😀\\"\\\\\\n"',
  '[]',
  '[1,"a",null,[true],{"b":[]}]',
  '{}',
  '{"a":{"b":null},"c":[{"d":1}],"":2}',
]

test('reads, transports and writes each kind of value unchanged', () => {
  for (const text of texts) {
    const value = readValue(JSON.parse(text), 'at', 1)
    assert.deepEqual(value, fromJson(ValueSchema, JSON.parse(text)), text)
    assert.equal(writeValue(fromBinary(ValueSchema, toBinary(ValueSchema, value))), text)
  }
  const written = writeValue(readValue(JSON.parse('{"__proto__":{"a":1}}'), 'at', 1))
  assert.equal(written, '{"__proto__":{"a":1}}')
})

test('values of a map keep their type, including null', () => {
  const text = `{"a":${texts.join(',"b":')}}`.replaceAll('"b":', () => `"b${count++}":`)
  const message = readJson(CheckedPolicySchema, JSON.parse(`{"parameters":${text}}`))
  assert.deepEqual(JSON.parse(jsonText(CheckedPolicySchema, message)).parameters, JSON.parse(text) as object)
})
let count = 0

test('writes values that JSON cannot represent as null', () => {
  const numbers = [Number.NaN, Number.POSITIVE_INFINITY]
  for (const value of numbers) {
    assert.equal(writeValue(create(ValueSchema, { kind: { case: 'numberValue', value } })), 'null')
  }
  assert.equal(writeValue(create(ValueSchema)), 'null')
})

test('limits values from clients, and the error names the field', () => {
  const refused = (text: string): string => {
    try {
      readJson(CheckedPolicySchema, JSON.parse(`{"parameters":{"a":${text}}}`))
    } catch (error) {
      assert.ok(error instanceof AppError)
      return error.message
    }
    return 'accepted'
  }
  const nested = (depth: number, open: string, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`
  for (const [open, close] of [
    ['[', ']'],
    ['{"b":', '}'],
  ] as const) {
    assert.equal(refused(nested(60, open, close)), 'accepted')
    assert.match(refused(nested(70, open, close)), /parameters\["a"\].*is nested too deeply/)
    assert.match(refused(nested(5000, open, close)), /is nested too deeply/)
  }
  assert.match(refused('1e999'), /parameters\["a"\]: has a number that is too large/)
  assert.match(refused('"\\ud800"'), /parameters\["a"\]: must be valid Unicode/)
  assert.match(refused('["\\u0000"]'), /parameters\["a"\]\[0\]: must not contain a NUL/)
  assert.match(refused('{"\\ud800":1}'), /parameters\["a"\]: must be valid Unicode/)
})
