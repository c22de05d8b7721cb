import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeBits, encodeBits } from './capability-set.ts'

// groups.list is bit 3, repo.list is bit 58, and tag.list is bit 66. API clients depend on these encoded texts.
const vectors = [
  { bits: [3], text: 'AAAAAAAAADIAAAAAAAAACA==' },
  { bits: [3, 58], text: 'AAAAAAAAADsEAAAAAAAACA==' },
  { bits: [3, 66], text: 'AAAAAAAAAEMAAAAAAAAACAAAAAAAAAAE' },
]
const maskOf = (bits: number[]): bigint => bits.reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n)

test('writes and reads sets as in the test vectors', () => {
  for (const { bits, text } of vectors) {
    assert.equal(encodeBits(maskOf(bits)), text)
    assert.equal(decodeBits(text), maskOf(bits))
  }
})

test('each single bit survives encoding and decoding', () => {
  for (let bit = 0; bit < 300; bit++) assert.equal(decodeBits(encodeBits(1n << BigInt(bit))), 1n << BigInt(bit))
})

test('refuses text that no encoder wrote', () => {
  for (const text of [
    '',
    'AAAA',
    '!!!!',
    'AAAAAAAAADIAAAAAAAAACA',
    'AAAAAAAAAP8AAAAAAAAACA==',
    '//////////8=',
    'AAAAAAAAAAEAAAAAAAAACA==',
  ]) {
    assert.equal(decodeBits(text), undefined, text)
  }
})
