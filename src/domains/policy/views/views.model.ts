// Views: a component before the path of a repository that selects the digests of its tags. They are selected as of a date,
// `at-20261101/acme/app`, by a minimum age, `min-7d/acme/app`, or both.
import { parseTimestamp, toIso } from '#lib/timestamp.ts'

/** Age that a digest must have under a tag to be served. Both numbers are in milliseconds. */
export type Age = {
  ms: number
  /** Minimum time for which a tag must have pointed to a digest. Shorter assignments never count. */
  hold: number
  /** Assignments that count: of the requested tag only, or of any tag of the repository. */
  countFrom: 'tag' | 'repo'
}

/** View in a path. `name` is the text from the client. `at`, `age` or both are present. */
export type View = { name: string; at: string | undefined; age: Age | undefined }

const hour = 3_600_000
const units: Readonly<Record<string, number>> = { h: hour, d: 24 * hour, w: 7 * 24 * hour }

/** Default for `hold` in ms, if the view does not name it. */
export const defaultHold = 6 * hour
/** Maximum age and maximum hold. The minimum of both is an hour. */
export const maxAge = 3650 * units.d!
export const maxHold = 366 * units.d!

export class ViewProblem extends Error {
  override name = 'ViewProblem'
}

/** True if a path component can only be a view. Organizations that are older than views can also have such a name. */
export function looksLikeView(component: string): boolean {
  return /^(?:at|min)-/.test(component)
}

/**
 * Reads a view such as `at-20261101`, `at-20261101t120000z` or `min-7d`. `min-7d_hold-1h` sets a hold, and `_` also joins two
 * kinds of views. Throws ViewProblem.
 */
export function readView(name: string): View {
  const read: { at?: string; ms?: number; hold?: number } = {}
  for (const part of name.split('_')) {
    const [, kind = '', value = ''] = /^(at|min|hold)-(.*)$/.exec(part) ?? []
    const key = ({ at: 'at', min: 'ms', hold: 'hold' } as const)[kind]
    if (key === undefined)
      throw new ViewProblem(
        `${shown(part)} is not valid in a view; views are such as at-20261101, min-7d and min-7d_hold-1h`,
      )
    if (read[key] !== undefined) throw new ViewProblem(`a view cannot have ${kind}- twice`)
    if (key === 'at') read.at = momentOf(value)
    else read[key] = durationOf(kind, value, key === 'hold' ? maxHold : maxAge)
  }
  const { at, ms, hold } = read
  if (ms === undefined && hold !== undefined) throw new ViewProblem('hold- is only allowed together with min-')
  return { name, at, age: ms === undefined ? undefined : { ms, hold: hold ?? defaultHold, countFrom: 'tag' } }
}

const shown = (text: string): string => `"${text.slice(0, 40)}"`

function momentOf(value: string): string {
  const [, year, month, day, hours = '00', minutes = '00', seconds = '00', fraction = '000'] =
    /^(\d{4})(\d{2})(\d{2})(?:t(\d{2})(\d{2})(\d{2})(?:\.(\d{3}))?z)?$/.exec(value) ?? []
  const instant = parseTimestamp(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}.${fraction}Z`)
  if (!instant) {
    throw new ViewProblem(
      `at-${value.slice(0, 40)} is not a valid time: use at-20261101 or at-20261101t120000z, in UTC`,
    )
  }
  return toIso(instant)
}

/** A duration such as `7d` in milliseconds. Returns undefined for any other text. */
export function readDuration(text: string): number | undefined {
  const [, count, unit] = /^([1-9]\d{0,5})([hdw])$/.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * units[unit]!
}

function durationOf(kind: string, value: string, most: number): number {
  const ms = readDuration(value)
  if (ms === undefined)
    throw new ViewProblem(`${kind}-${value.slice(0, 40)} is not a valid duration: use one such as 12h, 7d or 2w`)
  if (ms > most) throw new ViewProblem(`${kind}- must be at most ${durationText(most)}`)
  return ms
}

/** Duration as text, as in views: `7d`, `36h`. */
export function durationText(ms: number): string {
  return ms % units.d! === 0 ? `${ms / units.d!}d` : `${Math.round(ms / hour)}h`
}

/** Adds milliseconds to a time that is stored as text. The result stays within the years 1 to 9999. */
export function timePlus(time: string, ms: number): string {
  const sum = Math.min(Math.max(Date.parse(time) + ms, Date.parse('0001-01-01T00:00:00Z')), 253_402_300_799_999)
  return new Date(sum).toISOString()
}

export type Assignment = {
  tag: string
  digest: string
  begin: string
  /**
   * Time from which the assignment counts. An assignment from an upstream counts from the time at which its content was stored
   * here, if that is later.
   */
  since: string
  /** End of the assignment. Missing while the tag still points to the digest. */
  end?: { time: string; deleted: boolean; digest: string } | undefined
}

/**
 * Reason why an assignment does not count, from its own data. A rollback can only be detected with other rows of the tag history.
 */
export function problemOf({ since, end }: Assignment, hold: number): 'deleted' | 'short' | undefined {
  if (!end) return undefined
  if (end.deleted) return 'deleted'
  return end.time < timePlus(since, hold) ? 'short' : undefined
}

/** Reason why an assignment is not served. `young`: the assignment counts, but is not old enough yet. */
export type SkipReason = 'young' | 'short' | 'deleted' | 'rolled back' | 'gone'

/** Assignment that is not served. `eligible` is the time from which it is served, if only time has to pass. */
export type Skipped = { digest: string; time: string; reason: SkipReason; eligible?: string }

/** Number of assignments that one request can still check. If none is left, unchecked digests count as too young. */
export type ReadBudget = { left: number }

export function createReadBudget(): ReadBudget {
  return { left: 3000 }
}
