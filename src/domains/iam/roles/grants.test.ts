import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Reader, Sql } from '#db/sql.ts'
import { maskOf } from '../access/capabilities.ts'
import { createGrantCache } from './grants.ts'

const identity = 'c'.repeat(40)
const [group, other] = ['a'.repeat(40), 'b'.repeat(40)]
const [groupsList, repoList] = [103, 1605]

type Row = { scope: string | null; capabilities: string }
const nothing: Row[] = [{ scope: null, capabilities: '' }]
const rowOf = (scope: string, ...numbers: number[]): Row => ({ scope, capabilities: JSON.stringify(numbers) })

/** A fake database. The test decides when each query returns and what. */
function fakeReader() {
  const asked: { query: Sql; answer: (rows: Row[]) => void; fail: (error: Error) => void }[] = []
  const reader = {
    all: (query: Sql) => new Promise<Row[]>((resolve, reject) => asked.push({ query, answer: resolve, fail: reject })),
  } as unknown as Reader
  return { reader, asked }
}

function startCache() {
  const { reader, asked } = fakeReader()
  const clock = { now: 1000 }
  return { asked, clock, cache: createGrantCache(reader, () => clock.now) }
}

test('roles on one group add up', async () => {
  const { cache, asked } = startCache()
  const grants = cache.of(identity)
  assert.deepEqual(asked[0]!.query.values, [identity])
  asked[0]!.answer([rowOf(group, groupsList), rowOf(group, repoList), rowOf(other, repoList)])
  assert.deepEqual(
    await grants,
    new Map([
      [group, maskOf([groupsList, repoList])],
      [other, maskOf([repoList])],
    ]),
  )
})

test('ignores a capability of a newer version in a stored role', async () => {
  const { cache, asked } = startCache()
  const grants = cache.of(identity)
  asked[0]!.answer([rowOf(group, groupsList, 999_999)])
  assert.deepEqual(await grants, new Map([[group, maskOf([groupsList])]]))
})

test('returns no grants for an identity without bindings, and undefined for a deleted one', async () => {
  const { cache, asked } = startCache()
  const [there, gone] = [cache.of(identity), cache.of(other)]
  asked[0]!.answer([{ scope: null, capabilities: '' }])
  asked[1]!.answer([])
  assert.deepEqual(await there, new Map())
  assert.equal(await gone, undefined)

  // The identity may be created at any time, so its absence is not cached.
  assert.equal(cache.of(identity), there)
  const made = cache.of(other)
  asked[2]!.answer(nothing)
  assert.deepEqual(await made, new Map())
})

test('caches a result for half a second after the start of its query', async () => {
  const { cache, asked, clock } = startCache()
  const first = cache.of(identity)
  clock.now += 499
  assert.equal(cache.of(identity), first)
  asked[0]!.answer([rowOf(group, repoList)])
  assert.equal((await cache.of(identity))?.size, 1)
  assert.equal(asked.length, 1)

  clock.now += 1
  const second = cache.of(identity)
  assert.equal(asked.length, 2)
  asked[1]!.answer(nothing)
  assert.equal((await second)?.size, 0)
})

test('clear makes the next call query the database', async () => {
  const { cache, asked } = startCache()
  const before = cache.of(identity)
  asked[0]!.answer([rowOf(group, repoList)])
  await before

  cache.clear()
  const after = cache.of(identity)
  assert.equal(asked.length, 2)
  asked[1]!.answer(nothing)
  assert.equal((await after)?.size, 0)
})

test('a query that runs during clear does not serve later callers', async () => {
  const { cache, asked } = startCache()
  const early = cache.of(identity)
  cache.clear()
  const late = cache.of(identity)
  asked[1]!.answer(nothing)
  assert.equal((await late)?.size, 0)

  asked[0]!.answer([rowOf(group, repoList)])
  assert.equal((await early)?.size, 1)
  assert.equal((await cache.of(identity))?.size, 0)
  assert.equal(asked.length, 2)
})

test('a failed query rejects for all waiting callers, and the next call queries again', async () => {
  const { cache, asked } = startCache()
  const first = cache.of(identity)
  asked[0]!.fail(new Error('connection lost'))
  await assert.rejects(first, /connection lost/)

  const second = cache.of(identity)
  asked[1]!.answer([rowOf(group, repoList)])
  assert.equal((await second)?.size, 1)
})

test('a query that fails after clear does not remove the newer result', async () => {
  const { cache, asked } = startCache()
  const early = cache.of(identity)
  cache.clear()
  const late = cache.of(identity)
  asked[1]!.answer([rowOf(group, repoList)])
  await late
  asked[0]!.fail(new Error('connection lost'))
  await assert.rejects(early)
  assert.equal(cache.of(identity), late)
})

test('identities have separate cache entries', async () => {
  const { cache, asked } = startCache()
  const [mine, theirs] = [cache.of(identity), cache.of(other)]
  asked[0]!.answer([rowOf(group, repoList)])
  asked[1]!.answer(nothing)
  assert.equal((await mine)?.size, 1)
  assert.equal((await theirs)?.size, 0)
})

test('keeps at most 10,000 entries, and drops the oldest first', () => {
  const { cache, asked } = startCache()
  const uid = (i: number) => i.toString(16).padStart(40, '0')
  for (let i = 0; i <= 10_000; i++) void cache.of(uid(i))
  void cache.of(uid(1))
  assert.equal(asked.length, 10_001)
  void cache.of(uid(0))
  assert.equal(asked.length, 10_002)
})
