// Regular expressions that users write, in RE2 syntax: checked, compiled, cached and matched here and nowhere else.
import { RE2JS } from 're2js'
import type { FieldViolation } from '../errors.ts'
import type { Yielder } from '../scheduling/yielder.ts'
import { estimateCost, type PatternCost } from './pattern-cost.ts'

export { estimateCost as costOf } from './pattern-cost.ts'

/** Limits of the patterns of one list or resource. `steps` and `compile` are those of `PatternCost`. */
export type PatternLimits = {
  bytes: number
  /** Limits of one pattern. */
  steps: number
  compile: number
  /** Limits of all patterns together. */
  allSteps: number
  allCompile: number
}

/** Steps times characters that one match may take: about a millisecond (`bench/patterns.ts`). */
const mostWork = 54_000
/** Beyond 500 re2js matches with threads, which takes twice as long. */
const mostSteps = 400
/** Compile cost of one pattern, in nominal microseconds; the real time stays below 2 ms. */
const mostCompile = 1600
/** Limits of stored patterns: about 10 ms to compile and 10 ms to match. */
const mostStored = { work: 280_000, compile: 10_000 }
/**
 * Most cost of all cached patterns, in nominal microseconds. This also bounds the memory of the cache: at most 250 bytes each.
 */
const mostCached = 250_000
/** Number of instructions that `read` adds to a program: three, or two in a few programs. */
const groupSize = 3
/** Greatest number of steps for one instruction. */
const mostStepsEach = 3

/** `length` is that of the longest text that is matched. */
export function limitsFor(
  length: number,
  all: Pick<PatternLimits, 'bytes' | 'allSteps' | 'allCompile'>,
): PatternLimits {
  return { ...all, steps: Math.min(mostSteps, Math.floor(mostWork / (length + 1))), compile: mostCompile }
}

export type Patterns = {
  /**
   * Returns the refused patterns with the reason, by their field. Compiles only patterns within the limits. Stops at the first
   * pattern that exceeds the limits together with earlier ones.
   */
  problems(named: readonly (readonly [field: string, pattern: string])[], limits: PatternLimits): FieldViolation[]
  /** True if a pattern matches the whole text. Returns `too long` if the text, or the pattern, is beyond any limit. */
  match(pattern: string, text: string): boolean | 'too long'
  /**
   * Number of instructions of the compiled program, which is at most the steps of its estimate. Returns undefined if the text is
   * not a regular expression, or is too large to be compiled.
   */
  sizeOf(pattern: string): number | undefined
  /** True if one of the patterns matches the whole text. Yields to other work between two patterns. */
  matchesAny(patterns: readonly string[], text: string, yielder: Yielder): Promise<boolean>
  /** Number of patterns that were compiled so far, and number and cost of the cached ones. */
  counts(): { compiled: number; cached: number; weight: number }
}

/** `expression` is undefined for a text that is no regular expression, and for one that is too large to be compiled. */
type Compiled = { expression: RE2JS | undefined; size: number; steps: number; isTooLarge: boolean; weight: number }

/** Cache of the compiled patterns of a process. If it is full, the least recently used pattern is removed. */
export function createPatterns(mostWeight: number = mostCached): Patterns {
  const cache = new Map<string, Compiled>()
  let [compiled, weight] = [0, 0]

  const keep = (pattern: string, one: Compiled): Compiled => {
    weight += one.weight
    for (const [oldest, { weight: freed }] of cache) {
      if (weight <= mostWeight) break
      cache.delete(oldest)
      weight -= freed
    }
    cache.set(pattern, one)
    return one
  }
  const compile = (pattern: string): Compiled => {
    const kept = cache.get(pattern)
    if (kept) {
      cache.delete(pattern)
      cache.set(pattern, kept)
      return kept
    }
    const cost = estimateCost(pattern)
    const isTooLarge = cost !== undefined && cost.compile > mostStored.compile
    if (!cost || isTooLarge)
      return keep(pattern, { expression: undefined, size: 0, steps: 0, isTooLarge, weight: pattern.length })
    compiled++
    const expression = read(pattern)
    const size = expression ? expression.programSize() - groupSize : 0
    // Programs of alternatives and of empty repetitions are much smaller than their estimates.
    const steps = Math.min(cost.steps, mostStepsEach * size)
    return keep(pattern, { expression, size, steps, isTooLarge, weight: cost.compile })
  }
  const match = (pattern: string, text: string): boolean | 'too long' => {
    const { expression, steps, isTooLarge } = compile(pattern)
    if (isTooLarge || steps * (text.length + 1) > mostStored.work) return 'too long'
    // A matcher tracks groups, so it does without the automaton, whose states would cost far more than the match.
    return expression?.matcher(text).matches() ?? false
  }
  return {
    match,
    sizeOf(pattern) {
      const { expression, size } = compile(pattern)
      return expression && size
    },
    problems(named, limits) {
      const all: PatternCost = { steps: 0, compile: 0 }
      const found: FieldViolation[] = []
      for (const [field, pattern] of named) {
        const description = problemIn(pattern, limits, all)
        if (description) found.push({ field, description })
        else if (!compile(pattern).expression) found.push({ field, description: notAnExpression })
        // Reading the others would take its time as well.
        if (all.steps > limits.allSteps || all.compile > limits.allCompile) break
      }
      return found
    },
    async matchesAny(patterns, text, yielder) {
      for (const pattern of patterns) {
        if (yielder.isDue()) await yielder.next()
        if (match(pattern, text) === true) return true
      }
      return false
    },
    counts: () => ({ compiled, cached: cache.size, weight }),
  }
}

export const patterns: Patterns = createPatterns()

const notAnExpression = 'is not a regular expression in RE2 syntax'

/** Why one pattern is above the limits, or `undefined`. Reads only its text. */
export function overLimit(pattern: string, limits: PatternLimits): string | undefined {
  return problemIn(pattern, limits, { steps: 0, compile: 0 })
}

/** The same, and adds the pattern to `all` of its list, also where it is refused. */
function problemIn(pattern: string, limits: PatternLimits, all: PatternCost): string | undefined {
  if (pattern === '') return 'is empty'
  if (Buffer.byteLength(pattern) > limits.bytes) return `must be at most ${limits.bytes} bytes`
  const cost = estimateCost(pattern)
  all.compile += cost?.compile ?? pattern.length
  if (!cost) return notAnExpression
  const { steps, compile } = cost
  if (steps > limits.steps)
    return `is too large: it has ${steps} steps, counting repetitions, and at most ${limits.steps} are allowed`
  if (compile > limits.compile)
    return `is too large to compile: its cost is ${compile}, and at most ${limits.compile} is allowed`
  all.steps += steps
  if (all.steps > limits.allSteps)
    return `makes the list too large: all patterns together have ${all.steps} steps, and at most ${limits.allSteps} are allowed`
  if (all.compile <= limits.allCompile) return undefined
  return `makes the list too large to compile: all patterns together cost ${all.compile}, and at most ${limits.allCompile} is allowed`
}

/**
 * Problem of a stored pattern above the limits, and the texts that it still matches; `undefined` if it is within them. `mostWork`
 * is the limit of steps times characters for a match. Reads only the text of the pattern: a smaller program matches longer texts.
 */
export function storedProblem(
  pattern: string,
  limits: PatternLimits,
  mostWork: number = mostStored.work,
): string | undefined {
  const problem = overLimit(pattern, limits)
  const cost = problem && estimateCost(pattern)
  if (!cost) return problem
  const length = cost.compile > mostStored.compile ? 0 : Math.max(0, Math.floor(mostWork / cost.steps) - 1)
  return `${problem}. It matches ${length === 0 ? 'nothing' : `texts of up to ${length} characters`}; replace it with a shorter pattern`
}

/**
 * Compiles with an empty group in front, which makes no difference to what matches. It keeps re2js from building a one-pass
 * program. Alternatives are grouped, since their program is larger if only the first has the group in front.
 */
function read(pattern: string): RE2JS | undefined {
  // A quote that is not closed (`\Qa`) would quote the end of the group of alternatives.
  for (const grouped of [`()(?:${pattern})`, `()${pattern}`]) {
    try {
      return RE2JS.compile(grouped)
    } catch {
      // Neither compiles if the pattern is not a regular expression.
    }
  }
  return undefined
}
