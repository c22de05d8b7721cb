import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createMemory } from './memory.ts'

const options = { waitMs: 60_000, crowded: 'too many', refusal: (why: string) => new Error(why) }

const { signal } = new AbortController()

test('grants memory reservations in order of arrival, and never above the limit', async () => {
  const memory = createMemory(10, options)
  const order: number[] = []
  const first = await memory.reserve(6, signal)
  const take = async (at: number, bytes: number) => {
    const reserved = await memory.reserve(bytes, signal)
    order.push(at)
    assert.ok(memory.held() <= 10)
    await turn()
    reserved.free()
  }
  // The third reservation would fit, but the second one came before.
  const others = [take(2, 8), take(3, 4), take(4, 10)]
  await turn()
  assert.deepEqual([order, memory.held()], [[], 6])
  first.free()
  first.free()
  await Promise.all(others)
  assert.deepEqual([order, memory.held()], [[2, 3, 4], 0])
})

test('grants a reservation above the limit if it is the only one', async () => {
  const memory = createMemory(10, options)
  const large = await memory.reserve(50, signal)
  const small = memory.reserve(1, signal)
  large.free()
  ;(await small).free()
  assert.equal(memory.held(), 0)
})

test('refuses a reservation that waits too long, removes an aborted one, and grants the others', async () => {
  const memory = createMemory(10, { ...options, waitMs: 5 })
  const first = await memory.reserve(10, signal)
  await assert.rejects(memory.reserve(1, signal), { message: 'too many' })
  const gone = new AbortController()
  const leaving = memory.reserve(1, gone.signal)
  gone.abort(new Error('gone'))
  await assert.rejects(leaving, { message: 'gone' })
  first.free()
  ;(await memory.reserve(10, signal)).free()
  assert.equal(memory.held(), 0)
})

const quick = { filled: () => undefined, take() {} }

test('an owner of half of the memory waits behind others, and gets all memory if no other owner waits', async () => {
  const memory = createMemory(10, options)
  const a = { owner: 'a', ...quick }
  const order: string[] = []
  const first = await memory.reserve(5, signal, a)
  const second = await memory.reserve(5, signal, a)
  const waiting = [a, { owner: 'b', ...quick }].map(async (holder) => {
    const reserved = await memory.reserve(4, signal, holder)
    order.push(holder.owner)
    return reserved
  })
  await turn()
  assert.deepEqual(order, [])
  first.free()
  await waiting[1]
  assert.deepEqual([order, memory.held()], [['b'], 9])
  second.free()
  for (const reserved of await Promise.all(waiting)) reserved.free()
  assert.deepEqual([order, memory.held()], [['b', 'a'], 0])
})

test('grants a later owner at once if there is space and the owner ahead had its share', async () => {
  const memory = createMemory(10, options)
  const gone = new AbortController()
  await memory.reserve(5, signal, { owner: 'a', ...quick })
  const large = assert.rejects(memory.reserve(6, gone.signal, { owner: 'a', ...quick }), /gone/)
  await memory.reserve(3, signal, { owner: 'b', ...quick })
  assert.equal(memory.held(), 8)
  gone.abort(new Error('gone'))
  await large
})

test('revokes a slow buffer once another owner waits, but not one that is being sent', async () => {
  let now = 0
  const memory = createMemory(10, { ...options, slowMs: 1, leastRate: 100, monotonic: () => now })
  const taken: string[] = []
  const holder = (owner: string, filled: number | undefined) => ({
    owner,
    filled: () => filled,
    take: (why: Error) => void taken.push(`${owner}: ${why.message}`),
  })
  await memory.reserve(4, signal, holder('slow', 1))
  await memory.reserve(3, signal, holder('sent', undefined))
  await memory.reserve(3, signal, holder('quick', 5000))
  now = 10_000
  assert.deepEqual(taken, [])
  const next = await memory.reserve(4, signal, holder('next', 0))
  assert.deepEqual([taken, memory.held()], [['slow: it was sent too slowly while other uploads waited'], 10])
  next.free()
})

test('revokes the least filled buffer of an owner of more than half once another waits, however fast it fills', async () => {
  let [now, asked] = [0, 0]
  const memory = createMemory(10, { ...options, slowMs: 1, leastRate: 1, monotonic: () => now })
  const taken: string[] = []
  const holder = (owner: string, filled: number | undefined) => ({
    owner,
    filled() {
      asked++
      return filled
    },
    take: (why: Error) => void taken.push(`${owner} ${filled}: ${why.message}`),
  })
  for (const filled of [90, undefined, 70, 80, 60]) await memory.reserve(2, signal, holder('a', filled))
  now = 10_000
  const why = 'its organization used more than half of the memory while others waited'
  await memory.reserve(3, signal, holder('b', 0))
  assert.deepEqual([taken, memory.held()], [[`a 60: ${why}`, `a 70: ${why}`], 9])
  await memory.reserve(2, signal, holder('c', 0))
  assert.deepEqual([taken.slice(2), memory.held()], [[`a 80: ${why}`], 9])
  // The remaining buffers of the owner are at most half of the memory, so none is revoked.
  const gone = new AbortController()
  const waiting = assert.rejects(memory.reserve(2, gone.signal, holder('d', 0)), /gone/)
  for (const until = asked + 20; asked < until; ) await turn()
  assert.equal(taken.length, 3)
  gone.abort(new Error('gone'))
  await waiting
})
