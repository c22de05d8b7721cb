import { vendorEventType } from '#lib/naming/vendor.ts'

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

/** Takes each piece between stars at its first place, so that it walks the type once. */
function matches(pattern: string, type: string): boolean {
  const [start, ...rest] = pattern.split('*')
  const end = rest.pop()
  if (end === undefined) return pattern === type
  if (!type.startsWith(start!)) return false
  let at = start!.length
  for (const piece of rest) {
    const found = type.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return type.length - end.length >= at && type.endsWith(end)
}
