import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLruCache } from './lru-cache.ts'

test('caches a result for its version, and drops the least recently used result', async () => {
  const remembered = createLruCache<string>(2)
  const asked: string[] = []
  const of = (key: string, version = 1) =>
    remembered.of(key, version, async () => {
      asked.push(`${key}${version}`)
      return `${key}${version}`
    })
  for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) assert.equal(await of(key), `${key}1`)
  assert.deepEqual(asked, ['a1', 'b1', 'c1', 'b1'])
  assert.equal(await of('a', 2), 'a2')
  assert.equal(await of('a', 2), 'a2')
  assert.deepEqual(asked.slice(4), ['a2'])
})

test('does not cache a failure', async () => {
  const remembered = createLruCache<number>(2)
  await assert.rejects(remembered.of('a', 1, () => Promise.reject(new Error('no'))))
  assert.equal(await remembered.of('a', 1, async () => 1), 1)
})
