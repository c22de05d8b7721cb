import type { App } from '#app.ts'
import { vendorEventType } from '#lib/naming/vendor.ts'
import { matchesGlob, readGlob } from '#lib/patterns/globs.ts'

/**
 * True if one of the patterns matches the whole type, or if there are no patterns. `*` matches any text. With a `token`, patterns
 * are also compared with the vendor's name of the type.
 */
export function matchesType(patterns: readonly string[], type: string, token = ''): boolean {
  if (patterns.length === 0 || patterns.some((pattern) => matches(pattern, type))) return true
  if (token === '') return false
  const theirs = vendorEventType(type, token)
  return patterns.some((pattern) => matches(pattern, theirs))
}

const matches = (pattern: string, type: string): boolean => matchesGlob(readGlob(pattern), type)

/** Fields of a subscription that select its events. `vendor` is empty for our own names. */
export type EventSelection = { uid: string; types: readonly string[]; vendor: string }

/** True if a subscription receives an event. A subscription does not receive events about itself. */
export function wants(
  app: Pick<App, 'vendor'>,
  { uid, types, vendor }: EventSelection,
  { type, subject }: { type: string; subject: string },
): boolean {
  return subject !== uid && matchesType(types, type, vendor || app.vendor?.token)
}
