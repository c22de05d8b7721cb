import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSharedResults, createShortLivedCache } from './short-lived-cache.ts'

function reads(answers: (number | undefined | Error)[]) {
  const counts = { read: 0 }
  const read = async () => {
    const answer = answers[counts.read++]
    if (answer instanceof Error) throw answer
    return answer
  }
  return { counts, read }
}

test('reads a result again once it is too old or the cache was cleared', async () => {
  let now = 0
  const aged = createSharedResults<number | undefined>(() => now, { ageMs: 10, entries: 5 })
  const { counts, read } = reads([1, undefined, 3])
  assert.deepEqual(await Promise.all([aged.of('a', read), aged.of('a', read)]), [1, 1])
  now = 9
  assert.equal(await aged.of('a', read), 1)
  now = 10
  assert.equal(await aged.of('a', read), undefined)
  assert.equal(await aged.of('a', read), undefined)
  aged.clear()
  assert.equal(await aged.of('a', read), 3)
  assert.equal(counts.read, 3)
})

test('does not cache a failure', async () => {
  const aged = createSharedResults<number | undefined>(() => 0, { ageMs: 10, entries: 5 })
  const { read } = reads([new Error('no'), 2])
  await assert.rejects(aged.of('a', read), /no/)
  assert.equal(await aged.of('a', read), 2)
})

test('does not cache a missing result', async () => {
  const { counts, read } = reads([undefined, 2])
  const cache = createShortLivedCache(read, () => 0)
  assert.deepEqual([await cache.of('a'), await cache.of('a'), await cache.of('a')], [undefined, 2, 2])
  assert.equal(counts.read, 2)
})

test('returns a result that is not cached only to the caller that read it', async () => {
  const { read } = reads([undefined, 2])
  const aged = createSharedResults<number | undefined>(
    () => 0,
    { rereads: true },
    (one) => one !== undefined,
  )
  assert.deepEqual(await Promise.all([aged.of('a', read), aged.of('a', read)]), [undefined, 2])
})
