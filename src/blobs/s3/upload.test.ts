import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemory } from '#lib/scheduling/memory.ts'
import { ContentTooLarge, StoreUnavailable } from '../blobs.ts'
import type { Client } from './client.ts'
import { createUpload, pieceBytes } from './upload.ts'

const mebibyte = 1024 * 1024

test('increases the part size with the content, up to a limit that fits into memory', () => {
  assert.equal(pieceBytes(0), 16 * mebibyte)
  assert.equal(pieceBytes(9000 * 20 * mebibyte), 20 * mebibyte)
  assert.equal(pieceBytes(Number.MAX_SAFE_INTEGER), 64 * mebibyte)
})

test('refuses content with more parts than a bucket accepts before sending a request', () => {
  const memory = createMemory(mebibyte, {
    waitMs: 1,
    crowded: 'too many',
    refusal: (why) => new StoreUnavailable(why),
  })
  const begin = (expected: number) => () => createUpload({} as Client, memory, 'c/00', expected, '')
  assert.throws(begin(10_000 * 64 * mebibyte + 1), ContentTooLarge)
  assert.doesNotThrow(begin(10_000 * 64 * mebibyte))
})
