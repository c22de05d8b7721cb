// Where a tag stands on a day: plain values in, words of the contract out.
import { graceMonths, type Release } from './lifecycles.model.ts'

// The numbers are those of the contract.
export const tagStatuses = { active: 0, inGrace: 1, inactive: 2 } as const
export type TagStatus = keyof typeof tagStatuses
export const graceStatuses = { notEligible: 0, eligible: 1, active: 2, broken: 3, expired: 4 } as const
export type GraceStatus = keyof typeof graceStatuses

export type Standing = {
  tagStatus: TagStatus
  graceStatus: GraceStatus
  /** When the grace period ends, to the millisecond; only while it lasts. */
  expiry: string | undefined
}

export type Facts = {
  /** ISO, with milliseconds. */
  now: string
  /** The line that the tag's main package belongs to; undefined when it has none that is known. */
  release: Pick<Release, 'eolDate' | 'ended' | 'broken'> | undefined
  /** The organisation wants grace periods. */
  grace: boolean
  /** It is still built anew: no client, list or later build says otherwise. */
  rebuilt: boolean
}

/** A line whose day is known ends as that day begins, one whose day is not known when the list says so. */
export function hasEnded({ eolDate, ended }: Pick<Release, 'eolDate' | 'ended'>, now: string): boolean {
  return eolDate === '' ? ended : now > midnight(eolDate)
}

export function standingOf({ now, release, grace, rebuilt }: Facts): Standing {
  const status = graceOf({ now, release, grace })
  const over = release !== undefined && hasEnded(release, now)
  const tagStatus = status === 'active' ? 'inGrace' : !rebuilt || over ? 'inactive' : 'active'
  const expiry = status === 'active' && release ? graceEnd(release.eolDate) : undefined
  return { tagStatus, graceStatus: status, expiry }
}

function graceOf({ now, release, grace }: Omit<Facts, 'rebuilt'>): GraceStatus {
  if (!release || release.eolDate === '') return 'notEligible'
  if (!hasEnded(release, now)) return 'eligible'
  if (now >= graceEnd(release.eolDate)) return 'expired'
  if (release.broken) return 'broken'
  // It would have one, if the organisation wanted.
  return grace ? 'active' : 'eligible'
}

/** The first moment after the grace period. A month without such a day runs over into the next, as in Go's AddDate. */
export function graceEnd(eolDate: string): string {
  const [year = 0, month = 1, day = 1] = eolDate.split('-').map(Number)
  return new Date(Date.UTC(year, month - 1 + graceMonths, day)).toISOString()
}

function midnight(day: string): string {
  return `${day}T00:00:00.000Z`
}

/** A day that is in the calendar. */
export function isDay(text: string): boolean {
  const time = Date.parse(midnight(text))
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}
