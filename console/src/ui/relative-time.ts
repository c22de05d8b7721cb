// Text of a time relative to now: "18 min ago" within a day, then "28 Nov", and "28 Nov 2025" for another year.
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]

/** `timeZone` is undefined for the zone of the browser. */
export function relativeText(at: string, now: number, timeZone: string | undefined): string {
  const then = Date.parse(at)
  const past = now - then
  const isAhead = past < 0
  const far = Math.abs(past)
  const text = (count: number, unit: string) => (isAhead ? `in ${count} ${unit}` : `${count} ${unit} ago`)
  if (far < minute) return isAhead ? 'in less than a minute' : 'just now'
  if (far < hour) return text(Math.floor(far / minute), 'min')
  if (far < day) return text(Math.floor(far / hour), 'h')
  const yearOf = (time: number) => new Intl.DateTimeFormat('en-GB', { year: 'numeric', timeZone }).format(time)
  const isSameYear = yearOf(then) === yearOf(now)
  const year = isSameYear ? undefined : 'numeric'
  return new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year, timeZone }).format(then)
}
