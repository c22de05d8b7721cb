// Query parameters of the list endpoints.
import { isDigest } from '#lib/digest.ts'
import { parseTimestamp, toIso } from '#lib/timestamp.ts'
import { OciError } from './errors.ts'
import { digestForm } from './respond.ts'
import type { Visit } from './visit.ts'

/** A whole number that is not negative. Returns undefined if the parameter is missing. */
export function numberOf({ query }: Visit, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw refused(name, 'must be a whole number from 0 to 999999999')
}

/**
 * A time as ISO text. Times have milliseconds here, so a finer one is rounded `up` or `down`. A date means its beginning in UTC.
 */
export function timeOf({ query }: Visit, name: string, rounded: 'up' | 'down'): string | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  // In a query without encoding, the plus of a time zone offset arrives as a space.
  const full = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text.replace(/ (?=\d{2}:\d{2}$)/, '+')
  const instant = parseTimestamp(full)
  if (!instant) throw refused(name, 'must be a time such as 2026-08-01T12:00:00Z, or a date such as 2026-08-01')
  const floor = toIso(instant)
  const finer = instant.nanos % 1_000_000 !== 0
  return rounded === 'up' && finer ? new Date(Date.parse(floor) + 1).toISOString() : floor
}

export function digestOf({ query }: Visit): string | undefined {
  const text = query.get('digest')
  if (text === null || isDigest(text)) return text ?? undefined
  throw new OciError('DIGEST_INVALID', digestForm)
}

/** Link header to the next page: the same request with changed parameters. */
export function nextLink({ query }: Visit, path: string, changed: Record<string, string>): string {
  const next = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changed)) next.set(name, value)
  return `<${path}?${next}>; rel="next"`
}

/** Error for the value of a parameter. */
export function refused(parameter: string, why: string): OciError {
  return new OciError('UNSUPPORTED', `${parameter} ${why}`, { status: 400, detail: { parameter } })
}
