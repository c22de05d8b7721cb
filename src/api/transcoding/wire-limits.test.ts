import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { StructSchema, ValueSchema } from '@bufbuild/protobuf/wkt'
import type { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { CreateRoleRequestSchema } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { CreateRepoRequestSchema } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { wireProblem } from './wire-limits.ts'

const none = { depth: 1000, members: 1_000_000 }
const desc = CreateRepoRequestSchema

/** A message with `count` fields and elements, in each kind of field. */
const repo = toBinary(
  desc,
  create(desc, {
    parent: 'a',
    repo: {
      name: 'web',
      bundles: ['a', 'b'],
      customOverlay: {
        environment: { A: '1', B: '2' },
        contents: { packages: ['x'], runtimeKeyring: [{ name: 'k', content: 'c' }] },
      },
    },
  }),
)
// parent, repo, name, 2 bundles, overlay, 2 entries of 2 fields, contents, 1 package, keyring with 2 fields
const count = 2 + 1 + 2 + 1 + 2 * 3 + 1 + 1 + 3

test('counts fields and elements at all depths', () => {
  assert.equal(wireProblem(desc, repo, { depth: 5, members: count }), undefined)
  const problem = wireProblem(desc, repo, { depth: 5, members: count - 1 })
  assert.equal(problem, `has more than ${count - 1} fields and elements`)
})

test('counts the numbers of a list, in packed and unpacked encoding', () => {
  const capabilities = Array.from({ length: 300 }, (_, i) => (i + 1) as Capability)
  const packed = toBinary(CreateRoleRequestSchema, create(CreateRoleRequestSchema, { role: { capabilities } }))
  assert.equal(wireProblem(CreateRoleRequestSchema, packed, { depth: 5, members: 302 }), undefined)
  assert.notEqual(wireProblem(CreateRoleRequestSchema, packed, { depth: 5, members: 301 }), undefined)
})

test('counts unknown fields', () => {
  const unknown = Buffer.from('f83f01'.repeat(100), 'hex')
  for (const known of [desc, undefined]) {
    assert.equal(wireProblem(known, unknown, { depth: 5, members: 100 }), undefined)
    assert.notEqual(wireProblem(known, unknown, { depth: 5, members: 99 }), undefined)
  }
})

test('counts the nesting depth of messages', () => {
  let value = create(ValueSchema, { kind: { case: 'boolValue', value: true } })
  for (let i = 0; i < 10; i++) {
    const fields = { a: value }
    value = create(ValueSchema, { kind: { case: 'structValue', value: create(StructSchema, { fields }) } })
  }
  const bytes = toBinary(ValueSchema, value)
  // Each object needs a Value, a Struct and a map entry.
  assert.equal(wireProblem(ValueSchema, bytes, { ...none, depth: 31 }), undefined)
  assert.equal(wireProblem(ValueSchema, bytes, { ...none, depth: 30 }), 'is nested deeper than 30 levels')
})

test('refuses encodings that the decoder would read differently from the counter', () => {
  const wrong: Record<string, string> = {
    'a text that is sent as a number': '0801',
    'a message that is longer than what is around it': '12020a05aaaaaaaaaa',
    'a text that is longer than the message': '0a7f61',
    'a length of 2^31': '0affffffff0f',
    'a group': '0b0c',
    'a number of eleven bytes': 'f83fffffffffffffffffffff01',
    'a number that does not end': 'f83fff',
    'a tag that does not end': 'ff',
    'a field without a number': '0001',
  }
  for (const [what, hex] of Object.entries(wrong)) {
    const bytes = Buffer.from(hex, 'hex')
    assert.notEqual(wireProblem(desc, bytes, none), undefined, what)
  }
})

test('the decoder never creates more than was counted, for any bytes', () => {
  let seed = 11
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  /** Number of set values in a message, plus the elements of lists. The number is at most the number of fields read. */
  const valuesIn = (value: unknown): number => {
    if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + Math.max(1, valuesIn(one)), 0)
    if (typeof value !== 'object' || value === null) return value ? 1 : 0
    return Object.entries(value).reduce((sum, [name, one]) => sum + (name === '$typeName' ? 0 : valuesIn(one)), 0)
  }
  const counted = (bytes: Uint8Array): number | undefined => {
    for (let members = 1; members <= 2 * count; members++) {
      if (wireProblem(desc, bytes, { depth: 5, members }) === undefined) return members
    }
    return undefined
  }
  let accepted = 0
  for (let round = 0; round < 5000; round++) {
    const bytes = Buffer.from(repo)
    for (let change = 0; change <= random(3); change++) bytes[random(bytes.length)] = random(256)
    const members = counted(bytes)
    if (members === undefined) continue
    accepted++
    try {
      const read = fromBinary(desc, bytes, { readUnknownFields: false })
      assert.ok(valuesIn(read) <= members, bytes.toString('hex'))
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error
      // Text that is not UTF-8.
      assert.match(String(error), /invalid|utf/i)
    }
  }
  assert.ok(accepted > 500, `${accepted}`)
})
