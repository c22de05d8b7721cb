// Views: what stands before the path of a repository to say as of when its tags are read, `at-20261101/acme/app`, how old
// an image must be, `min-7d/acme/app`, or both.
import { parseTimestamp, toIso } from '#lib/timestamp.ts'

/** How long a digest must have been a tag to be served. Both in milliseconds. */
export type Age = {
  ms: number
  /** A stay under a tag that ended after less than this never counts. */
  hold: number
  /** Whose stays count: those under the tag that is asked for, or under any tag of the repo. */
  countFrom: 'tag' | 'repo'
}

/** `name` is what the client wrote. At least one of the others is there. */
export type View = { name: string; at: string | undefined; age: Age | undefined }

const hour = 3_600_000
const units: Readonly<Record<string, number>> = { h: hour, d: 24 * hour, w: 7 * 24 * hour }

/** What a view that names no hold has. */
export const defaultHold = 6 * hour
/** An age and a hold are at least an hour, and at most these. */
export const maxAge = 3650 * units.d!
export const maxHold = 366 * units.d!

export class ViewProblem extends Error {
  override name = 'ViewProblem'
}

/** Whether a component of a path can only be a view, or the name of an organisation that is older than views. */
export function looksLikeView(component: string): boolean {
  return /^(?:at|min)-/.test(component)
}

/** Reads `at-20261101`, `at-20261101t120000z`, `min-7d`, `min-7d_hold-1h`, and two kinds joined by `_`. Throws ViewProblem. */
export function readView(name: string): View {
  const read: { at?: string; ms?: number; hold?: number } = {}
  for (const part of name.split('_')) {
    const [, kind = '', value = ''] = /^(at|min|hold)-(.*)$/.exec(part) ?? []
    const key = ({ at: 'at', min: 'ms', hold: 'hold' } as const)[kind]
    if (key === undefined) throw new ViewProblem(`${shown(part)} is no part of a view`)
    if (read[key] !== undefined) throw new ViewProblem(`a view has one ${kind}- at most`)
    if (key === 'at') read.at = momentOf(value)
    else read[key] = durationOf(kind, value, key === 'hold' ? maxHold : maxAge)
  }
  const { at, ms, hold } = read
  if (ms === undefined && hold !== undefined) throw new ViewProblem('hold- goes with min- only')
  return { name, at, age: ms === undefined ? undefined : { ms, hold: hold ?? defaultHold, countFrom: 'tag' } }
}

const shown = (text: string): string => `"${text.slice(0, 40)}"`

function momentOf(value: string): string {
  const [, year, month, day, hours = '00', minutes = '00', seconds = '00', fraction = '000'] =
    /^(\d{4})(\d{2})(\d{2})(?:t(\d{2})(\d{2})(\d{2})(?:\.(\d{3}))?z)?$/.exec(value) ?? []
  const instant = parseTimestamp(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}.${fraction}Z`)
  if (!instant) {
    throw new ViewProblem(`at-${value.slice(0, 40)} is no time: write at-20261101 or at-20261101t120000z, in UTC`)
  }
  return toIso(instant)
}

/** A duration such as `7d`, in milliseconds; `undefined` for anything else. */
export function readDuration(text: string): number | undefined {
  const [, count, unit] = /^([1-9]\d{0,5})([hdw])$/.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * units[unit]!
}

function durationOf(kind: string, value: string, most: number): number {
  const ms = readDuration(value)
  if (ms === undefined) throw new ViewProblem(`${kind}-${value.slice(0, 40)} is no time span: write 12h, 7d or 2w`)
  if (ms > most) throw new ViewProblem(`${kind}- is at most ${durationText(most)}`)
  return ms
}

/** As people and views write it: `7d`, `36h`. */
export function durationText(ms: number): string {
  return ms % units.d! === 0 ? `${ms / units.d!}d` : `${Math.round(ms / hour)}h`
}

/** Times are text in the ledger. */
export function timePlus(time: string, ms: number): string {
  const sum = Math.min(Math.max(Date.parse(time) + ms, Date.parse('0001-01-01T00:00:00Z')), 253_402_300_799_999)
  return new Date(sum).toISOString()
}

export type Stay = {
  tag: string
  digest: string
  begin: string
  /** From when it counts: what an upstream was seen to have, not before its content came here. */
  since: string
  /** Absent while the tag still points there. */
  end?: { time: string; deleted: boolean; digest: string } | undefined
}

/** Why a stay does not count, as far as the stay itself says; whether its end was a move back the ledger knows. */
export function problemOf({ since, end }: Stay, hold: number): 'deleted' | 'short' | undefined {
  if (!end) return undefined
  if (end.deleted) return 'deleted'
  return end.time < timePlus(since, hold) ? 'short' : undefined
}

/** Why an assignment of a tag is passed over. `young`: it counts, but not for long enough yet. */
export type SkipReason = 'young' | 'short' | 'deleted' | 'rolled back' | 'gone'

/** An assignment that was passed over; `eligible` is when that ends, where it does by itself. */
export type Skipped = { digest: string; time: string; reason: SkipReason; eligible?: string }

/** How many more stays are judged for one request; where none is left, what was not looked at is not old enough. */
export type Looks = { left: number }

export function someLooks(): Looks {
  return { left: 3000 }
}
