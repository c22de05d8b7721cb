// Regular expressions from users, in RE2 syntax. Only this module checks, compiles, caches and matches them.
import { RE2JS } from 're2js'
import type { FieldViolation } from '../errors.ts'
import type { Yielder } from '../scheduling/yielder.ts'
import { estimateCost, type PatternCost } from './pattern-cost.ts'

export { estimateCost as costOf } from './pattern-cost.ts'

/** Limits on the patterns of one list or resource. `steps` and `compile` have the units of `PatternCost`. */
export type PatternLimits = {
  bytes: number
  /** Limits of one pattern. */
  steps: number
  compile: number
  /** Limits of all patterns together. */
  allSteps: number
  allCompile: number
}

/** Maximum product of steps and characters for one match. A match then takes about a millisecond (`bench/patterns.ts`). */
const mostWork = 54_000
/** Maximum number of steps of one pattern. Above 500, re2js uses an algorithm with threads, which is half as fast. */
const mostSteps = 400
/** Maximum compile cost of one pattern, in nominal microseconds. The real time stays below 2 ms. */
const mostCompile = 1600
/** Limits for stored patterns, which may be from earlier versions: about 10 ms to compile and 10 ms to match. */
const mostStored = { work: 280_000, compile: 10_000 }
/**
 * Maximum compile cost of all cached patterns, in nominal microseconds. One nominal microsecond is at most 250 bytes of memory,
 * so this also limits the memory of the cache.
 */
const mostCached = 250_000
/** Number of instructions that the empty group of `read` adds to a program. In a few programs it adds only two. */
const groupSize = 3
/** Maximum number of estimated steps for one compiled instruction. */
const mostStepsEach = 3

/** Limits for patterns that match texts of at most `length` characters. */
export function limitsFor(
  length: number,
  all: Pick<PatternLimits, 'bytes' | 'allSteps' | 'allCompile'>,
): PatternLimits {
  return { ...all, steps: Math.min(mostSteps, Math.floor(mostWork / (length + 1))), compile: mostCompile }
}

export type Patterns = {
  /**
   * Returns the field and the problem of each refused pattern. Compiles only patterns within the limits. Stops at the first
   * pattern with which the whole list exceeds the limits.
   */
  problems(named: readonly (readonly [field: string, pattern: string])[], limits: PatternLimits): FieldViolation[]
  /**
   * True if the pattern matches the whole text. Returns `too long` if the pattern is too large, or the text is too long for it.
   */
  match(pattern: string, text: string): boolean | 'too long'
  /**
   * Number of instructions of the compiled program, which is never above the estimated steps. Undefined if the pattern is not a
   * regular expression, or is too large to be compiled.
   */
  sizeOf(pattern: string): number | undefined
  /** True if one of the patterns matches the whole text. Yields to other work between two patterns. */
  matchesAny(patterns: readonly string[], text: string, yielder: Yielder): Promise<boolean>
  /** Number of patterns compiled so far, and the number and cost of the cached patterns. */
  counts(): { compiled: number; cached: number; weight: number }
}

/** `expression` is undefined if the text is not a regular expression, or is too large to be compiled. */
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
    // The estimate can be far too high, for alternatives and for empty repetitions. So the size of the compiled program limits
    // it.
    const steps = Math.min(cost.steps, mostStepsEach * size)
    return keep(pattern, { expression, size, steps, isTooLarge, weight: cost.compile })
  }
  const match = (pattern: string, text: string): boolean | 'too long' => {
    const { expression, steps, isTooLarge } = compile(pattern)
    if (isTooLarge || steps * (text.length + 1) > mostStored.work) return 'too long'
    // A matcher tracks groups, so re2js does not build its automaton. Building its states would take far longer than the match.
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
        // Stops here, since estimating the cost of further patterns would take time too.
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

/**
 * Limit that a pattern exceeds, as the description of a violation. `undefined` if it is within the limits. Does not compile the
 * pattern.
 */
export function overLimit(pattern: string, limits: PatternLimits): string | undefined {
  return problemIn(pattern, limits, { steps: 0, compile: 0 })
}

/** Like `overLimit`. Also adds the cost of the pattern to `all`, the cost of its list, even if the pattern is refused. */
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
 * Warning about a stored pattern above the limits, with the length of the texts that it still matches. `undefined` if it is
 * within the limits. `mostWork` is the maximum product of steps and characters. Uses only the estimate: the compiled program may
 * be smaller and match longer texts.
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
 * Compiles a pattern with an empty group in front, which does not change its matches. With the group, re2js does not build a
 * one-pass program. Alternatives are put in a group, since a prefix of only the first one makes their program larger.
 */
function read(pattern: string): RE2JS | undefined {
  // The second form is for patterns that end in an open quote (`\Qa`), which would quote the closing parenthesis of the first
  // form.
  for (const grouped of [`()(?:${pattern})`, `()${pattern}`]) {
    try {
      return RE2JS.compile(grouped)
    } catch {
      // If the pattern is not a regular expression, both forms fail.
    }
  }
  return undefined
}
