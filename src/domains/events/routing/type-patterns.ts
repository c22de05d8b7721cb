import { vendorEventType } from '#lib/naming/vendor.ts'
import { matchesGlob, readGlob } from '#lib/patterns/globs.ts'

/**
 * Whether one of the patterns matches the whole type; no patterns match every type. `*` stands for any text. With a `token`
 * the type under the name of that vendor will do as well.
 */
export function matchesType(patterns: readonly string[], type: string, token = ''): boolean {
  if (patterns.length === 0 || patterns.some((pattern) => matches(pattern, type))) return true
  if (token === '') return false
  const theirs = vendorEventType(type, token)
  return patterns.some((pattern) => matches(pattern, theirs))
}

const matches = (pattern: string, type: string): boolean => matchesGlob(readGlob(pattern), type)
