// Patterns for tags and for paths, each for the whole name. Names of tags among them stand for themselves.
import type { FieldViolation } from '#lib/errors.ts'
import { isTagName, maxPathLength, maxTagLength } from '#lib/oci-names.ts'
import { limitsFor, type PatternLimits, patterns, storedProblem } from '#lib/patterns/patterns.ts'
import { createYielder, type Yielder } from '#lib/scheduling/yielder.ts'

export const tagLimits = limitsFor(maxTagLength, { bytes: 512, allSteps: 5000, allCompile: 8000 })
/** Those of a hundred upstreams fit into the cache, since one pull may ask all of them. */
export const pathLimits = limitsFor(maxPathLength, { bytes: 512, allSteps: 2000, allCompile: 2500 })

const positionsOf = (field: string, list: readonly string[]) =>
  list.map((pattern, i) => [`${field}[${i}]`, pattern] as const)

/** Each pattern that cannot be read, or that is above the limits. */
export function patternProblems(
  field: string,
  list: readonly string[],
  { most, limits }: { most: number; limits: PatternLimits },
): FieldViolation[] {
  if (list.length > most) return [{ field, description: `must hold at most ${most} patterns` }]
  return patterns.problems(positionsOf(field, list), limits)
}

/** The first pattern that was stored before the limits and is above them, and which names it still matches; empty for none. */
export function storedPatternProblem(field: string, list: readonly string[], limits: PatternLimits): string {
  for (const [at, pattern] of positionsOf(field, list)) {
    const problem = storedProblem(pattern, limits)
    if (problem) return `${at} ${problem}`
  }
  return ''
}

/** Whether one of the patterns matches a whole name. All names match where there are none. */
export async function matchesNames(
  list: readonly string[],
  name: string,
  yielder: Yielder = createYielder(),
): Promise<boolean> {
  return list.length === 0 || patterns.matchesAny(list, name, yielder)
}

/** The tags that a list asks for by their names. */
export function namedTags(list: readonly string[]): string[] {
  return list.filter(isTagName)
}

export type MatchTag = (tag: string) => Promise<boolean>

/** Matches tags against the patterns of a list, without the names among them; `undefined` where there are only names. */
export function tagMatcher(list: readonly string[], yielder: Yielder = createYielder()): MatchTag | undefined {
  const others = list.filter((pattern) => !isTagName(pattern))
  if (list.length > 0 && others.length === 0) return undefined
  return (tag) => matchesNames(others, tag, yielder)
}
