import type { App } from '#app.ts'
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

/** What of a subscription decides which events it gets of those that it may see. `vendor` is empty for our names. */
export type Wishes = { uid: string; types: readonly string[]; vendor: string }

/** What happens to a subscription is news for the others. */
export function wants(
  app: Pick<App, 'vendor'>,
  { uid, types, vendor }: Wishes,
  { type, subject }: { type: string; subject: string },
): boolean {
  return subject !== uid && matchesType(types, type, vendor || app.vendor?.token)
}
