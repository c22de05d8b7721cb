// Patterns that users write, for tags and for paths. They are matched by RE2, in linear time whatever they say.
import { RE2JS } from 're2js'
import type { FieldViolation } from '#lib/errors.ts'
import { isTagName } from '#lib/oci-names.ts'

const maxBytes = 512
/** Of all patterns of one list. */
const maxSteps = 5000

/** Each pattern that cannot be read, or that makes the list too slow to match. */
export function patternProblems(field: string, patterns: readonly string[], most: number): FieldViolation[] {
  if (patterns.length > most) return [{ field, description: `must hold at most ${most} patterns` }]
  let steps = 0
  return patterns.flatMap((text, i): FieldViolation[] => {
    const at = `${field}[${i}]`
    if (text === '') return [{ field: at, description: 'is empty' }]
    if (Buffer.byteLength(text) > maxBytes) return [{ field: at, description: `must be at most ${maxBytes} bytes` }]
    // Compiling takes its time as well, so nothing is compiled after what was too much.
    if (steps > maxSteps) return []
    try {
      steps += RE2JS.compile(text).programSize()
    } catch {
      return [{ field: at, description: 'is not a regular expression in RE2 syntax' }]
    }
    return steps > maxSteps ? [{ field: at, description: 'repeats too much to be matched quickly' }] : []
  })
}

/** Whether one of the patterns matches a whole text; all texts match where there are none. */
export function matcherOf(patterns: readonly string[]): (text: string) => boolean {
  const compiled = patterns.map((pattern) => RE2JS.compile(pattern))
  return (text) => compiled.length === 0 || compiled.some((one) => one.matches(text))
}

/** What a list of tags asks for: names, of which each is one tag, and a matcher for the rest; `undefined` where there is none. */
export function readTagPatterns(patterns: readonly string[]): {
  names: string[]
  matches: ((tag: string) => boolean) | undefined
} {
  const names = patterns.filter(isTagName)
  const others = patterns.filter((pattern) => !isTagName(pattern))
  const none = patterns.length > 0 && others.length === 0
  return { names, matches: none ? undefined : matcherOf(others) }
}
