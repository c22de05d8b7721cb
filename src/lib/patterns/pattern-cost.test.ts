import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RE2JS } from 're2js'
import { generatePatterns } from '../../../test/support/generated-patterns.ts'
import { estimateCost } from './pattern-cost.ts'
import { limitsFor, overLimit } from './patterns.ts'

/** Includes the groups that `patterns.ts` adds. Returns `undefined` for an invalid regular expression. */
function sizeOf(pattern: string, grouped = `()(?:${pattern})`): number | undefined {
  try {
    return RE2JS.compile(grouped).programSize()
  } catch {
    return undefined
  }
}

test('estimates at least the real program size, for generated patterns of each kind', () => {
  let compared = 0
  for (const pattern of generatePatterns(1, 4000)) {
    const cost = estimateCost(pattern)
    // A pattern far above all limits takes too long to compile here.
    if (cost && (cost.steps > 4000 || cost.compile > 10_000)) continue
    const size = sizeOf(pattern)
    if (!cost) assert.equal(sizeOf(pattern, pattern), undefined, `refused, and is an expression: ${pattern}`)
    else if (size !== undefined) {
      assert.ok(size <= cost.steps, `${size} steps, estimated ${cost.steps}: ${pattern}`)
      compared++
    }
  }
  assert.ok(compared > 2000, `${compared} compared`)
})

test('estimates stay close to the real program size for plain patterns', () => {
  const plain = ['v[0-9]+\\.[0-9]+', 'repo:acme/[^:]+:ref:refs/tags/v.*', '.{0,100}', 'app|team/.*', '(a|b)+', 'x{3,}']
  for (const pattern of plain) {
    const [size, { steps }] = [sizeOf(pattern)!, estimateCost(pattern)!]
    assert.ok(steps <= 1.5 * size + 8, `${size} steps, estimated ${steps}: ${pattern}`)
  }
})

test('parses quotes, escapes, classes, groups and literal braces like the real parser', () => {
  const steps = (pattern: string) => estimateCost(pattern)!.steps - estimateCost('a')!.steps
  assert.deepEqual([steps('\\Q(a{9}\\E'), steps('a{,5}'), steps('a{01}'), steps('\\x{41}')], [4, 4, 4, 0])
  assert.deepEqual([steps('[]a)]'), steps('[^]]'), steps('(?:a)'), steps('(a)'), steps('a{3}')], [1, 2, 0, 2, 3])
  for (const wrong of ['(', ')', 'a)(', '[', '[]', '*a', '(?i)*', '(?=a)', '(?<!a)', 'a{1001}', 'a{2,1}']) {
    assert.equal(estimateCost(wrong), undefined, wrong)
  }
})

test('refuses a pattern that is slow to parse, compile or match, by its text alone', () => {
  const limits = limitsFor(128, { bytes: 512, allSteps: 5000, allCompile: 8000 })
  const hostile = [
    '(\\pL{1,100}){1,10}',
    '(?:(?:a{9}){999}){9}',
    '((((((.{0,99}){0,99}){0,99}){0,99}){0,99}){0,99}){0,99}',
    '\\pL'.repeat(170),
    `(?i)[${'\\p{Assigned}'.repeat(42)}]`,
    '(?i)[B-\\x{1e942}]',
    '(?i)[ſ-\u{1e942}]',
  ]
  for (const pattern of hostile) assert.match(overLimit(pattern, limits)!, /steps|compile/, pattern)
  for (const usual of ['.{0,100}', '[a-z0-9]{1,60}', 'v\\d+(\\.\\d+){0,2}(-rc\\d+)?', '\\pL+', '(?i)[a-z]+']) {
    assert.equal(overLimit(usual, limits), undefined, usual)
  }
})
