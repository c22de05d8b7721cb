import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createYielder } from '#lib/scheduling/yielder.ts'
import { matchesNames, namedTags, pathLimits, patternProblems, tagLimits, tagMatcher } from './tag-patterns.ts'
import { maxAllowed, maxUpstreams } from './upstreams.model.ts'

/** Clock that advances a millisecond at each reading, and the number of yields. */
function fakeTurns() {
  let [now, yields] = [0, 0]
  const yielder = createYielder(
    () => now++,
    async () => void yields++,
  )
  return { yielder, yields: () => yields, elapsed: () => now }
}

test('separates tag names from patterns, and a list of names alone needs no matcher', async () => {
  assert.deepEqual(namedTags(['latest', 'v.*', '1.0']), ['latest', '1.0'])
  assert.equal(tagMatcher(['latest', '1.0']), undefined)
  assert.equal(await tagMatcher([])!('anything'), true)
  assert.deepEqual([await tagMatcher(['latest', 'v.*'])!('v1'), await tagMatcher(['a', 'v.*'])!('a')], [true, false])
})

test('yields regularly to other work while matching a long list of tags', async () => {
  const turns = fakeTurns()
  const matches = tagMatcher(['v[0-9]+', 'x-.*'], turns.yielder)!
  let found = 0
  for (let i = 0; i < 4000; i++) if (await matches(`v${i}-no`)) found++
  assert.equal(found, 0)
  assert.ok(turns.yields() >= turns.elapsed() / 10, `${turns.yields()} in ${turns.elapsed()} ms`)
})

test('yields regularly to other work while matching the patterns of a hundred upstreams', async () => {
  const turns = fakeTurns()
  for (let i = 0; i < maxUpstreams; i++) await matchesNames([`team-${i}/.*`], 'app', turns.yielder)
  assert.ok(turns.yields() >= turns.elapsed() / 10, `${turns.yields()} in ${turns.elapsed()} ms`)
})

test('the cache holds the patterns of all upstreams of an organization', () => {
  assert.ok(pathLimits.allCompile * maxUpstreams <= 250_000)
  assert.ok(pathLimits.steps * 256 <= 54_000 && tagLimits.steps * 129 <= 54_000)
})

test('names the refused entry of a list, and refuses lists that are too long', () => {
  const problems = patternProblems('allow', ['a', '.{0,300}', '['], { most: maxAllowed, limits: pathLimits })
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['allow[1]', 'allow[2]'],
  )
  const many = Array.from({ length: maxAllowed + 1 }, () => 'a')
  assert.deepEqual(patternProblems('allow', many, { most: maxAllowed, limits: pathLimits }), [
    { field: 'allow', description: 'must have at most 20 patterns' },
  ])
})
