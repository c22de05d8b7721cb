import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Newest } from './newest.ts'

test('what was set longest ago makes room, and what is set again is the newest', () => {
  const newest = new Newest<string, number>(2).set('a', 1).set('b', 2).set('a', 3)
  assert.deepEqual([...newest], Object.entries({ b: 2, a: 3 }))
  newest.set('c', 4)
  assert.deepEqual([...newest], Object.entries({ a: 3, c: 4 }))
})
