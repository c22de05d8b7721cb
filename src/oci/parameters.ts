// Query parameters of the list endpoints.
import { isDigest } from '#lib/digest.ts'
import { parseTimestamp, toIso } from '#lib/timestamp.ts'
import { OciError } from './errors.ts'
import { digestForm } from './respond.ts'
import type { Visit } from './visit.ts'

/** Value of a parameter as a whole number from 0. Returns undefined if the parameter is missing. Throws for other values. */
export function numberOf({ query }: Visit, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw refused(name, 'must be a whole number from 0 to 999999999')
}

/**
 * Value of a parameter as a time in ISO 8601. Times here have milliseconds, so more precise times are rounded `up` or `down`. A
 * date without a time means midnight UTC.
 */
export function timeOf({ query }: Visit, name: string, rounded: 'up' | 'down'): string | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  // If the client did not encode the plus of a time zone offset, the plus arrives as a space.
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

/** Value of a Link header to the next page. The URL is that of the request, with changed parameters. */
export function nextLink({ query }: Visit, path: string, changed: Record<string, string>): string {
  const next = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changed)) next.set(name, value)
  return `<${path}?${next}>; rel="next"`
}

/** Error for an invalid query parameter. */
export function refused(parameter: string, why: string): OciError {
  return new OciError('UNSUPPORTED', `${parameter} ${why}`, { status: 400, detail: { parameter } })
}
