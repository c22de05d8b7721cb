import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createYielder } from '#lib/scheduling/yielder.ts'
import { matchesNames, namedTags, pathLimits, patternProblems, tagLimits, tagMatcher } from './tag-patterns.ts'
import { maxAllowed, maxUpstreams } from './upstreams.model.ts'

/** A clock on which each look takes a millisecond, and how often the loop let others run. */
function fakeTurns() {
  let [now, yields] = [0, 0]
  const yielder = createYielder(
    () => now++,
    async () => void yields++,
  )
  return { yielder, yields: () => yields, elapsed: () => now }
}

test('tells names from patterns, and a list of names matches nothing else', async () => {
  assert.deepEqual(namedTags(['latest', 'v.*', '1.0']), ['latest', '1.0'])
  assert.equal(tagMatcher(['latest', '1.0']), undefined)
  assert.equal(await tagMatcher([])!('anything'), true)
  assert.deepEqual([await tagMatcher(['latest', 'v.*'])!('v1'), await tagMatcher(['a', 'v.*'])!('a')], [true, false])
})

test('matching a long list of tags lets others run, by time', async () => {
  const turns = fakeTurns()
  const matches = tagMatcher(['v[0-9]+', 'x-.*'], turns.yielder)!
  let found = 0
  for (let i = 0; i < 4000; i++) if (await matches(`v${i}-no`)) found++
  assert.equal(found, 0)
  assert.ok(turns.yields() >= turns.elapsed() / 10, `${turns.yields()} in ${turns.elapsed()} ms`)
})

test('matching the patterns of a hundred upstreams lets others run in between', async () => {
  const turns = fakeTurns()
  for (let i = 0; i < maxUpstreams; i++) await matchesNames([`team-${i}/.*`], 'app', turns.yielder)
  assert.ok(turns.yields() >= turns.elapsed() / 10, `${turns.yields()} in ${turns.elapsed()} ms`)
})

test('the patterns of all upstreams of an organization fit into the cache at once', () => {
  assert.ok(pathLimits.allCompile * maxUpstreams <= 250_000)
  assert.ok(pathLimits.steps * 256 <= 54_000 && tagLimits.steps * 129 <= 54_000)
})

test('says which entry of a list is refused, and refuses lists that are too long', () => {
  const problems = patternProblems('allow', ['a', '.{0,300}', '['], { most: maxAllowed, limits: pathLimits })
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['allow[1]', 'allow[2]'],
  )
  const many = Array.from({ length: maxAllowed + 1 }, () => 'a')
  assert.deepEqual(patternProblems('allow', many, { most: maxAllowed, limits: pathLimits }), [
    { field: 'allow', description: 'must hold at most 20 patterns' },
  ])
})
