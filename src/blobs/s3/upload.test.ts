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

test('keeps at most 1 MiB without a reservation, and none of it if the caller wants one', async () => {
  const memory = createMemory(64 * mebibyte, {
    waitMs: 1,
    crowded: 'too many',
    refusal: (why) => new StoreUnavailable(why),
  })
  const begin = () => createUpload({ isUp: () => false } as Client, memory, 'c/00', 0, '')
  const piece = Buffer.alloc(mebibyte / 2)
  const part = begin()
  await part.write([piece])
  await part.write([piece])
  assert.deepEqual([part.unreserved, memory.held()], [mebibyte, 0])
  await part.write([piece])
  assert.deepEqual([part.unreserved, memory.held()], [0, 16 * mebibyte])
  await part.discard()
  const crowded = begin()
  await crowded.write([Buffer.alloc(1)], true)
  assert.deepEqual([crowded.unreserved, memory.held()], [0, 16 * mebibyte])
  await crowded.discard()
  assert.equal(memory.held(), 0)
})
