import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstInBoth } from './first-in-both.ts'

test('finds numbers in both lists, in order and once', () => {
  const some = [new Set([1, 5, 9]), new Set([2, 5])]
  const others = [new Set([0, 2, 9]), new Set([5]), new Set([1, 3, 4, 6])]
  assert.deepEqual(firstInBoth(some, others, 10), [1, 2, 5, 9])
  assert.deepEqual(firstInBoth(some, others, 3), [1, 2, 5])
  assert.deepEqual(firstInBoth(others, some, 3), [1, 2, 5])
  assert.deepEqual(firstInBoth(some, others, 0), [])
  assert.deepEqual(firstInBoth([], others, 3), [])
})

test('reads no more numbers than needed', () => {
  let looks = 0
  class Counted extends Set<number> {
    override has(value: number): boolean {
      looks++
      return super.has(value)
    }
  }
  const numbers = Array.from({ length: 5000 }, (_, i) => i)
  assert.equal(firstInBoth([new Set(numbers)], [new Counted([...numbers, 5000])], 20).length, 20)
  assert.ok(looks <= 20, `${looks}`)
})
