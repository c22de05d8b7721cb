// Compares versions with OSV ranges, https://ossf.github.io/osv-schema/#evaluation. Some texts in ranges are no valid versions.

/** Compares two versions. Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. */
export type VersionOrder = (one: string, other: string) => number | undefined

/** Start, end or limit of a range, with exactly one field. `introduced` can be `0`, which is before every version. */
export type RangeEvent = { introduced: string } | { fixed: string } | { lastAffected: string } | { limit: string }

/** A version range. Its events are in no particular order. */
export type VersionRange = { type: 'ECOSYSTEM' | 'SEMVER'; events: RangeEvent[] }

/** `unknown`: a text that had to be compared is no version. */
export type Covered = 'yes' | 'no' | 'unknown'

/** Returns `yes` if a version is in one of the ranges, `no` without ranges, and `unknown` if versions cannot be compared. */
export function inRanges(version: string, ranges: readonly VersionRange[], order: VersionOrder): Covered {
  let unknown = false
  for (const range of ranges) {
    const covered = inRange(version, range, order)
    if (covered === 'yes') return 'yes'
    if (covered === 'unknown') unknown = true
  }
  return unknown ? 'unknown' : 'no'
}

/** For each range that contains the version, the version at which the range ends. The lowest comes first. */
export function fixesAbove(version: string, ranges: readonly VersionRange[], order: VersionOrder): string[] {
  const fixes = new Set<string>()
  for (const range of ranges) {
    if (inRange(version, range, order) === 'no') continue
    const above = range.events
      .flatMap((event) => ('fixed' in event ? [event.fixed] : []))
      .filter((fixed) => (order(version, fixed) ?? -1) < 0)
      .sort((a, b) => order(a, b) ?? 0)
    if (above[0] !== undefined) fixes.add(above[0])
  }
  return [...fixes].sort((a, b) => order(a, b) ?? 0)
}

// If events have the same version, the start comes first. So a range that begins and ends at the same version is empty.
const ranks = { introduced: 0, lastAffected: 1, fixed: 2 } as const
type Step = { kind: keyof typeof ranks; version: string }

function inRange(version: string, { events }: VersionRange, order: VersionOrder): Covered {
  const limited = beforeLimits(version, events, order)
  if (limited !== 'yes') return limited
  const steps = events.flatMap((event): Step[] => {
    if ('introduced' in event) return [{ kind: 'introduced', version: event.introduced }]
    if ('fixed' in event) return [{ kind: 'fixed', version: event.fixed }]
    return 'lastAffected' in event ? [{ kind: 'lastAffected', version: event.lastAffected }] : []
  })
  // A range that includes all versions also includes texts that are no versions.
  if (steps.length > 0 && steps.every(({ kind, version: at }) => kind === 'introduced' && at === '0')) return 'yes'
  const sorted = inOrder(steps, order)
  if (!sorted) return 'unknown'
  let covered = false
  for (const { kind, version: at } of sorted) {
    const difference = isStart(kind, at) ? 1 : order(version, at)
    if (difference === undefined) return 'unknown'
    if (kind === 'introduced' && difference >= 0) covered = true
    else if (kind === 'fixed' && difference >= 0) covered = false
    else if (kind === 'lastAffected' && difference > 0) covered = false
  }
  return covered ? 'yes' : 'no'
}

const isStart = (kind: string, version: string): boolean => kind === 'introduced' && version === '0'

/** Sorts events by version. Undefined if two of the versions cannot be compared. */
function inOrder(steps: readonly Step[], order: VersionOrder): readonly Step[] | undefined {
  if (steps.length < 2) return steps
  let comparable = true
  const sorted = steps.toSorted((a, b) => {
    const [first, second] = [isStart(a.kind, a.version), isStart(b.kind, b.version)]
    if (first || second) return Number(second) - Number(first)
    const difference = order(a.version, b.version)
    if (difference === undefined) comparable = false
    return (difference ?? 0) || ranks[a.kind] - ranks[b.kind]
  })
  return comparable ? sorted : undefined
}

/** `yes` if the version is before one of the limits of the range, or if the range has no limits. */
function beforeLimits(version: string, events: readonly RangeEvent[], order: VersionOrder): Covered {
  const limits = events.flatMap((event) => ('limit' in event ? [event.limit] : []))
  if (limits.length === 0 || limits.includes('*')) return 'yes'
  const differences = limits.map((limit) => order(version, limit))
  if (differences.some((difference) => difference !== undefined && difference < 0)) return 'yes'
  return differences.includes(undefined) ? 'unknown' : 'no'
}
