// Titles of days in the audit log.
import { isUtc } from '../../app/settings.ts'

const formats = new Map<string, Intl.DateTimeFormat>()

function format(name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${name} ${isUtc.value}`
  const known = formats.get(key)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-GB', { ...options, ...(isUtc.value && { timeZone: 'UTC' }) })
  formats.set(key, made)
  return made
}

const dayOf = (at: Date): string => format('day', { dateStyle: 'short' }).format(at)

/** Day as a title, such as "Today, 29 November". */
export function dayTitle(at: string, now: Date): string {
  const time = new Date(at)
  const isSameYear = time.getUTCFullYear() === now.getUTCFullYear()
  const long = format(`long ${isSameYear}`, {
    ...{ day: 'numeric', month: 'long', weekday: 'long' },
    ...(!isSameYear && { year: 'numeric' }),
  })
  const short = format('short', { day: 'numeric', month: 'long' })
  if (dayOf(time) === dayOf(now)) return `Today, ${short.format(time)}`
  if (dayOf(time) === dayOf(new Date(now.getTime() - 86_400_000))) return `Yesterday, ${short.format(time)}`
  return long.format(time)
}
