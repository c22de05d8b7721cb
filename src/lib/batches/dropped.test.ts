import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDropped } from './dropped.ts'

test('counts dropped items at once, and logs them once a minute with the total', () => {
  let [now, counted] = [5, 0]
  const reported: number[] = []
  const dropped = createDropped(
    (by) => {
      counted += by
    },
    (since) => reported.push(since),
    () => now,
  )
  dropped.add(0)
  assert.deepEqual(reported, [])
  for (const by of [3, 2, 2]) dropped.add(by)
  assert.deepEqual([counted, reported], [7, [3]])
  now += 59_999
  dropped.add(0)
  assert.deepEqual(reported, [3])
  now += 1
  dropped.add(0)
  assert.deepEqual(reported, [3, 4])
  now += 60_000
  dropped.add(0)
  assert.deepEqual(reported, [3, 4], 'nothing new')
  for (const by of [1, 1]) dropped.add(by)
  dropped.close()
  assert.deepEqual([counted, reported], [9, [3, 4, 1, 1]])
})
