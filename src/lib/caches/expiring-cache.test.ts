import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createExpiringCache } from './expiring-cache.ts'

test('drops expired entries, and the entry that was set first when full', () => {
  const known = createExpiringCache<string>(2)
  known.set('a', 'one', 10)
  known.set('b', 'two', 20)
  assert.deepEqual([known.get('a', 9), known.get('a', 10), known.get('b', 10)], ['one', undefined, 'two'])
  known.set('c', 'three', 20)
  known.set('b', 'four', 20)
  known.set('d', 'five', 20)
  assert.deepEqual([known.get('c', 0), known.get('b', 0), known.get('d', 0)], [undefined, 'four', 'five'])
})
