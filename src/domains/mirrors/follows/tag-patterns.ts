// Patterns for whole tag names and whole paths. A pattern that is a valid tag name matches only this name.
import type { FieldViolation } from '#lib/errors.ts'
import { isTagName, maxPathLength, maxTagLength } from '#lib/oci-names.ts'
import { limitsFor, type PatternLimits, patterns, storedProblem } from '#lib/patterns/patterns.ts'
import { createYielder, type Yielder } from '#lib/scheduling/yielder.ts'

export const tagLimits = limitsFor(maxTagLength, { bytes: 512, allSteps: 5000, allCompile: 8000 })
/**
 * Limits for patterns of paths. The cache has room for the patterns of a hundred upstreams, since one pull may match all of them.
 */
export const pathLimits = limitsFor(maxPathLength, { bytes: 512, allSteps: 2000, allCompile: 2500 })

const positionsOf = (field: string, list: readonly string[]) =>
  list.map((pattern, i) => [`${field}[${i}]`, pattern] as const)

/** Field violations for patterns that cannot be parsed or that exceed the limits. */
export function patternProblems(
  field: string,
  list: readonly string[],
  { most, limits }: { most: number; limits: PatternLimits },
): FieldViolation[] {
  if (list.length > most) return [{ field, description: `must have at most ${most} patterns` }]
  return patterns.problems(positionsOf(field, list), limits)
}

/**
 * Problem of the first stored pattern above the limits, and the names that this pattern still matches. Empty if there is none.
 */
export function storedPatternProblem(field: string, list: readonly string[], limits: PatternLimits): string {
  for (const [at, pattern] of positionsOf(field, list)) {
    const problem = storedProblem(pattern, limits)
    if (problem) return `${at} ${problem}`
  }
  return ''
}

/** True if a pattern matches the whole name. An empty list matches all names. */
export async function matchesNames(
  list: readonly string[],
  name: string,
  yielder: Yielder = createYielder(),
): Promise<boolean> {
  return list.length === 0 || patterns.matchesAny(list, name, yielder)
}

/** Entries of a list of patterns that are tag names. */
export function namedTags(list: readonly string[]): string[] {
  return list.filter(isTagName)
}

export type MatchTag = (tag: string) => Promise<boolean>

/**
 * Creates a function that matches tags against the patterns of a list. Entries that are tag names are left out. Returns undefined
 * if the list has only tag names.
 */
export function tagMatcher(list: readonly string[], yielder: Yielder = createYielder()): MatchTag | undefined {
  const others = list.filter((pattern) => !isTagName(pattern))
  if (list.length > 0 && others.length === 0) return undefined
  return (tag) => matchesNames(others, tag, yielder)
}
