import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Newest } from './newest.ts'

test('drops the entry that was set longest ago, and setting an entry again makes it the newest', () => {
  const newest = new Newest<string, number>(2).set('a', 1).set('b', 2).set('a', 3)
  assert.deepEqual([...newest], Object.entries({ b: 2, a: 3 }))
  newest.set('c', 4)
  assert.deepEqual([...newest], Object.entries({ a: 3, c: 4 }))
})

test('drops the oldest key also after keys were set again, deleted or cleared', () => {
  const map = new Newest<number, number>(3)
  for (let key = 0; key < 10; key++) map.set(key, key)
  assert.deepEqual([...map.keys()], [7, 8, 9])
  map.set(7, 0).set(10, 10)
  assert.deepEqual([...map.keys()], [9, 7, 10])
  map.delete(9)
  for (const key of [11, 12]) map.set(key, key)
  assert.deepEqual([...map.keys()], [10, 11, 12])
  map.clear()
  for (const key of [1, 2, 3, 4]) map.set(key, key)
  assert.deepEqual([...map.keys()], [2, 3, 4])
})
