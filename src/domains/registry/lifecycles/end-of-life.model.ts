// End-of-life status of a tag at a given time, in the terms of the API.
import { graceMonths, type Release } from './lifecycles.model.ts'

// The numbers are the enum numbers of the API.
export const tagStatuses = { active: 0, inGrace: 1, inactive: 2 } as const
export type TagStatus = keyof typeof tagStatuses
export const graceStatuses = { notEligible: 0, eligible: 1, active: 2, broken: 3, expired: 4 } as const
export type GraceStatus = keyof typeof graceStatuses

export type SupportState = {
  tagStatus: TagStatus
  graceStatus: GraceStatus
  /** End of the grace period, with milliseconds. Undefined unless it is in progress. */
  expiry: string | undefined
}

export type Facts = {
  /** ISO text with milliseconds. */
  now: string
  /** Release line of the main package of the tag. Undefined if none is known. */
  release: Pick<Release, 'eolDate' | 'ended' | 'broken'> | undefined
  /** True if the organization has grace periods. */
  grace: boolean
  /** True if the image is still rebuilt. False if a client or the product data says otherwise, or if there is a later build. */
  rebuilt: boolean
}

/**
 * True if the release line has ended. If the day is known, the line ends at the beginning of that day. Otherwise the product data
 * says whether the line has ended.
 */
export function hasEnded({ eolDate, ended }: Pick<Release, 'eolDate' | 'ended'>, now: string): boolean {
  return eolDate === '' ? ended : now > midnight(eolDate)
}

export function supportStateOf({ now, release, grace, rebuilt }: Facts): SupportState {
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
  // An eligible tag would have a grace period if the organization enabled grace periods.
  return grace ? 'active' : 'eligible'
}

/**
 * First moment after the grace period. If the month lacks the day, the date runs over into the next month, as in Go's AddDate.
 */
export function graceEnd(eolDate: string): string {
  const [year = 0, month = 1, day = 1] = eolDate.split('-').map(Number)
  return new Date(Date.UTC(year, month - 1 + graceMonths, day)).toISOString()
}

function midnight(day: string): string {
  return `${day}T00:00:00.000Z`
}

/** True if the text is a day of the calendar. */
export function isDay(text: string): boolean {
  const time = Date.parse(midnight(text))
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}
