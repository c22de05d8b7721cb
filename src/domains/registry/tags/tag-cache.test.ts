import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '#db/sql.ts'
import { createTagCache } from './tag-cache.ts'

const repo = { id: 1 } as Parameters<ReturnType<typeof createTagCache>['of']>[0]

/** Database that returns `digest` for each tag, after `wait` has resolved. */
function scene(engine: 'sqlite' | 'postgres') {
  const state = { digest: 'one', asked: 0, now: 0, wait: Promise.resolve() }
  const get = async () => {
    state.asked++
    const { digest } = state
    await state.wait
    return digest === '' ? undefined : { digest, since: 'then' }
  }
  return { state, cache: createTagCache({ engine, get } as unknown as Db, () => state.now) }
}

test('caches a tag for half a second, or until a commit changes any tag', async () => {
  const { state, cache } = scene('sqlite')
  for (const _ of [1, 2]) assert.equal((await cache.of(repo, 'a'))?.digest, 'one')
  assert.equal(state.asked, 1)
  state.digest = 'two'
  cache.clear()
  assert.equal((await cache.of(repo, 'a'))?.digest, 'two')
  state.digest = 'three'
  state.now = 499
  assert.equal((await cache.of(repo, 'a'))?.digest, 'two')
  state.now = 500
  assert.equal((await cache.of(repo, 'a'))?.digest, 'three')
  state.digest = ''
  cache.clear()
  assert.equal(await cache.of(repo, 'a'), undefined)
  state.digest = 'four'
  assert.equal((await cache.of(repo, 'a'))?.digest, 'four')
})

test('does not cache a tag that was read during its update', async () => {
  const { state, cache } = scene('sqlite')
  const { promise, resolve } = Promise.withResolvers<void>()
  state.wait = promise
  const before = cache.of(repo, 'a')
  state.digest = 'two'
  cache.clear()
  resolve()
  assert.equal((await before)?.digest, 'one')
  assert.equal((await cache.of(repo, 'a'))?.digest, 'two')
})

test('reads the database each time if servers share it', async () => {
  const { state, cache } = scene('postgres')
  for (const digest of ['one', 'two']) {
    state.digest = digest
    assert.equal((await cache.of(repo, 'a'))?.digest, digest)
  }
})

test('caches a limited number of tags, the newest', async () => {
  const { state, cache } = scene('sqlite')
  for (let i = 0; i <= 10_000; i++) await cache.of(repo, `tag-${i}`)
  const { asked } = state
  await cache.of(repo, 'tag-10000')
  await cache.of(repo, 'tag-1')
  assert.equal(state.asked, asked)
  await cache.of(repo, 'tag-0')
  assert.equal(state.asked, asked + 1)
})
