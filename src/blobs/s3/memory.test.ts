import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { StoreAway } from '../blobs.ts'
import { createMemory } from './memory.ts'

const { signal } = new AbortController()

test('whoever comes waits for those before, in order, and never holds more than there is', async () => {
  const memory = createMemory(10, 60_000)
  const order: number[] = []
  const first = await memory.reserve(6, signal)
  const take = async (at: number, bytes: number) => {
    const reserved = await memory.reserve(bytes, signal)
    order.push(at)
    assert.ok(memory.held() <= 10)
    await turn()
    reserved.free()
  }
  // The third would fit, but the second was there before.
  const others = [take(2, 8), take(3, 4), take(4, 10)]
  await turn()
  assert.deepEqual([order, memory.held()], [[], 6])
  first.free()
  first.free()
  await Promise.all(others)
  assert.deepEqual([order, memory.held()], [[2, 3, 4], 0])
})

test('what is larger than all there is gets in alone', async () => {
  const memory = createMemory(10, 60_000)
  const large = await memory.reserve(50, signal)
  const small = memory.reserve(1, signal)
  large.free()
  ;(await small).free()
  assert.equal(memory.held(), 0)
})

test('who waits for too long is refused, who is gone is forgotten, and others go on', async () => {
  const memory = createMemory(10, 5)
  const first = await memory.reserve(10, signal)
  await assert.rejects(memory.reserve(1, signal), StoreAway)
  const gone = new AbortController()
  const leaving = memory.reserve(1, gone.signal)
  gone.abort(new Error('gone'))
  await assert.rejects(leaving, { message: 'gone' })
  first.free()
  ;(await memory.reserve(10, signal)).free()
  assert.equal(memory.held(), 0)
})
