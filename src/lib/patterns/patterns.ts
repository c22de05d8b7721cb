// Regular expressions that users write, in RE2 syntax: checked, compiled, cached and matched here and nowhere else.
import { RE2JS } from 're2js'
import type { FieldViolation } from '../errors.ts'
import type { Yielder } from '../turns/yielder.ts'
import { estimateCost, type PatternCost } from './pattern-cost.ts'

export { estimateCost as costOf } from './pattern-cost.ts'

/** Limits of the patterns of one list or resource. `steps` and `compile` are those of `PatternCost`. */
export type PatternLimits = {
  bytes: number
  /** Of one pattern. */
  steps: number
  compile: number
  /** Of all patterns together. */
  allSteps: number
  allCompile: number
}

/** Steps times characters that one match may take: about a millisecond (`bench/patterns.ts`). */
const mostWork = 70_000
/** Beyond this re2js matches with threads, which takes three times as long. */
const mostSteps = 500
/** Nominal microseconds: two milliseconds are never exceeded. */
const mostCompile = 1600
/** The same for patterns that were stored before these limits. Ten milliseconds each. */
const mostStored = { work: 280_000, compile: 10_000 }
/** Of the cache, in nominal microseconds of its patterns. This also bounds its memory: about 100 bytes each. */
const mostCached = 250_000

/** `length` is that of the longest text that is matched. */
export function limitsFor(
  length: number,
  all: Pick<PatternLimits, 'bytes' | 'allSteps' | 'allCompile'>,
): PatternLimits {
  return { ...all, steps: Math.min(mostSteps, Math.floor(mostWork / (length + 1))), compile: mostCompile }
}

export type Patterns = {
  /** Says which patterns are refused and why, by their field. Compiles only what is within the limits. */
  problems(named: readonly (readonly [field: string, pattern: string])[], limits: PatternLimits): FieldViolation[]
  /** Whether a pattern matches the whole text. `too long` if the text, or the pattern, is beyond any limit. */
  match(pattern: string, text: string): boolean | 'too long'
  /** Whether one of the patterns matches the whole text. Lets others run between two patterns. */
  matchesAny(patterns: readonly string[], text: string, yielder: Yielder): Promise<boolean>
  /** How many patterns were compiled so far, and what the cached ones cost. */
  counts(): { compiled: number; cached: number; cost: number }
}

/** `undefined` for a text that is not a regular expression. */
type Compiled = { expression: RE2JS | undefined; cost: PatternCost }

/** Those of the process. The least recently used pattern makes room for a new one. */
export function createPatterns(mostCost: number = mostCached): Patterns {
  const cache = new Map<string, Compiled>()
  let [compiled, cost] = [0, 0]

  const keep = (pattern: string, one: Compiled): Compiled => {
    cost += one.cost.compile
    for (const [oldest, { cost: freed }] of cache) {
      if (cost <= mostCost) break
      cache.delete(oldest)
      cost -= freed.compile
    }
    cache.set(pattern, one)
    return one
  }
  const compile = (pattern: string): Compiled | undefined => {
    const kept = cache.get(pattern)
    if (kept) {
      cache.delete(pattern)
      cache.set(pattern, kept)
      return kept
    }
    const estimate = estimateCost(pattern)
    if (!estimate || estimate.compile > mostStored.compile) return undefined
    compiled++
    return keep(pattern, { expression: read(pattern), cost: estimate })
  }
  const match = (pattern: string, text: string): boolean | 'too long' => {
    const found = compile(pattern)
    if (!found) return estimateCost(pattern) ? 'too long' : false
    if (!found.expression) return false
    if (found.cost.steps * (text.length + 1) > mostStored.work) return 'too long'
    // A matcher tracks groups, so it does without the automaton, whose states would cost far more than the match.
    return found.expression.matcher(text).matches()
  }
  return {
    match,
    problems(named, limits) {
      const all = { steps: 0, compile: 0 }
      return named.flatMap(([field, pattern]): FieldViolation[] => {
        const description = overLimit(pattern, limits) ?? overAll(pattern, limits, all)
        if (description) return [{ field, description }]
        return compile(pattern)?.expression ? [] : [{ field, description: notAnExpression }]
      })
    },
    async matchesAny(patterns, text, yielder) {
      for (const pattern of patterns) {
        if (yielder.isDue()) await yielder.next()
        if (match(pattern, text) === true) return true
      }
      return false
    },
    counts: () => ({ compiled, cached: cache.size, cost }),
  }
}

export const patterns: Patterns = createPatterns()

const notAnExpression = 'is not a regular expression in RE2 syntax'

/** Why one pattern is above the limits, or `undefined`. Reads only its text. */
export function overLimit(pattern: string, limits: PatternLimits): string | undefined {
  if (pattern === '') return 'is empty'
  if (Buffer.byteLength(pattern) > limits.bytes) return `must be at most ${limits.bytes} bytes`
  const cost = estimateCost(pattern)
  if (!cost) return notAnExpression
  if (cost.steps > limits.steps) return `takes ${cost.steps} steps with its repetitions; ${limits.steps} are allowed`
  if (cost.compile > limits.compile)
    return `takes too long to compile, at a cost of ${cost.compile} of ${limits.compile}`
  return undefined
}

/** Why a stored pattern is above the limits, and what it still matches; `undefined` where it is within them. */
export function storedProblem(pattern: string, limits: PatternLimits): string | undefined {
  const problem = overLimit(pattern, limits)
  const cost = problem && estimateCost(pattern)
  if (!cost) return problem
  const length = cost.compile > mostStored.compile ? 0 : Math.max(0, Math.floor(mostStored.work / cost.steps) - 1)
  return `${problem}. It matches ${length === 0 ? 'nothing' : `texts of up to ${length} characters`}: write a shorter one`
}

function overAll(pattern: string, limits: PatternLimits, all: PatternCost): string | undefined {
  const { steps, compile } = estimateCost(pattern)!
  // Each pattern after the first that is too much is refused as well, whatever it costs.
  all.steps += steps
  all.compile += compile
  if (all.steps > limits.allSteps) return `brings the patterns to ${all.steps} steps; ${limits.allSteps} are allowed`
  if (all.compile <= limits.allCompile) return undefined
  return `brings the patterns to a cost of ${all.compile}; ${limits.allCompile} are allowed`
}

/** The empty group in front makes no difference to what matches. It keeps re2js from building a one-pass program. */
function read(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(`()${pattern}`)
  } catch {
    return undefined
  }
}
