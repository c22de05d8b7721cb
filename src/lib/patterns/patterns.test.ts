import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RE2JS } from 're2js'
import { generatePatterns } from '../../../test/support/generated-patterns.ts'
import { createYielder } from '../scheduling/yielder.ts'
import { estimateCost } from './pattern-cost.ts'
import { createPatterns, limitsFor, overLimit, storedProblem } from './patterns.ts'

const limits = limitsFor(128, { bytes: 512, allSteps: 1000, allCompile: 3000 })

test('matches whole texts like the automaton of re2js', () => {
  const texts = ['', 'a', 'k', 'aa', 'a-b', 'repo:acme/', 'x', 'é😀', 'aaaaaaaaaa\n', 'SſsS', 'Kk', 'v1.2']
  const patterns = createPatterns()
  let matched = 0
  for (const pattern of generatePatterns(2, 1500)) {
    if (overLimit(pattern, limits) || patterns.problems([['f', pattern]], limits).length > 0) continue
    const reference = RE2JS.compile(pattern)
    for (const text of texts) {
      assert.equal(patterns.match(pattern, text), reference.matches(text), `${pattern} on ${JSON.stringify(text)}`)
    }
    matched++
  }
  assert.ok(matched > 400, `${matched} patterns`)
})

test('an accepted pattern fits the backtracker, with bounded work for its longest text', () => {
  for (const length of [128, 255, 1000]) {
    const { steps } = limitsFor(length, limits)
    assert.ok(steps <= 400 && steps * (length + 1) <= 54_000)
  }
})

test('compiles each pattern once, and compiles no refused pattern', () => {
  const patterns = createPatterns()
  for (let i = 0; i < 100; i++) assert.equal(patterns.match('v[0-9]+', 'v1'), true)
  assert.equal(patterns.counts().compiled, 1)
  const refused = ['(\\pL{1,100}){1,10}', '\\pL'.repeat(170), '', '(', 'x'.repeat(513)]
  const problems = patterns.problems(
    refused.map((pattern, i) => [`tags[${i}]`, pattern]),
    limits,
  )
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['tags[0]'],
    'those after what is too much are not read',
  )
  for (const [i, pattern] of refused.entries()) {
    assert.deepEqual(
      patterns.problems([[`${i}`, pattern]], limits).map(({ field }) => field),
      [`${i}`],
    )
  }
  assert.equal(patterns.counts().compiled, 1)
})

test('counts the program instructions without those that it adds itself', () => {
  const { sizeOf, match } = createPatterns()
  for (const pattern of ['.{0,100}', 'abc1|abc2|abc3', '(?i)abc', '^a$', '\\Qa|b']) {
    assert.equal(sizeOf(pattern), RE2JS.compile(pattern).programSize(), pattern)
  }
  assert.deepEqual([sizeOf('('), sizeOf('\\8'), sizeOf('\\pL'.repeat(170))], [undefined, undefined, undefined])
  assert.deepEqual([match('\\Qa|b', 'a|b'), match('\\Qa|b', 'a'), match('a|b', 'b')], [true, false, true])
})

test('refuses a list of patterns whose total cost is too high', () => {
  const named = Array.from({ length: 6 }, (_, i) => [`allow[${i}]`, `.{0,100}${i}`] as const)
  const problems = createPatterns().problems(named, limits)
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['allow[4]'],
  )
  assert.match(problems[0]!.description, /1035 steps, and at most 1000 are allowed/)
})

test('evicts the least recently used pattern by the cost of the cached ones', () => {
  const weight = estimateCost('a1')!.compile
  const patterns = createPatterns(3 * weight)
  for (const pattern of ['a1', 'a2', 'a3', 'a1', 'a4']) patterns.match(pattern, 'a')
  assert.deepEqual(patterns.counts(), { compiled: 4, cached: 3, weight: 3 * weight })
  patterns.match('a1', 'a')
  assert.equal(patterns.counts().compiled, 4, 'it was used, and is still there')
  patterns.match('a2', 'a')
  assert.equal(patterns.counts().compiled, 5)
})

test('matches a stored pattern above the limits only with short texts, and reports the maximum length', () => {
  const patterns = createPatterns()
  const old = '(?:.{1,30}){1,30}'
  assert.match(
    storedProblem(old, limits)!,
    /has 18\d\d steps, .* at most 400 are allowed. It matches texts of up to 15\d char/,
  )
  assert.equal(patterns.match(old, 'x'.repeat(128)), true)
  assert.equal(patterns.match(old, 'x'.repeat(200)), 'too long')
  // Compiling this pattern would delay other waiting work too much.
  const worst = '\\pL'.repeat(170)
  assert.match(storedProblem(worst, limits)!, /It matches nothing/)
  assert.equal(patterns.match(worst, 'x'.repeat(170)), 'too long')
  assert.equal(patterns.counts().compiled, 1)
  assert.equal(storedProblem('.*', limits), undefined)
  assert.match(storedProblem(old, limits, 80_000)!, /It matches texts of up to 4\d char/)
})

test('lets other work run between two patterns after a long turn', async () => {
  let [now, yields] = [0, 0]
  const yielder = createYielder(
    () => now++,
    async () => void yields++,
  )
  const list = Array.from({ length: 100 }, (_, i) => `v${i}\\..*`)
  assert.equal(await createPatterns().matchesAny(list, 'latest', yielder), false)
  // The test clock advances a millisecond at each reading, so a few patterns end a turn.
  assert.ok(yields >= 15 && yields <= 20, `${yields} yields`)
})
