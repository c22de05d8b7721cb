// Which versions a range of OSV covers, https://ossf.github.io/osv-schema/#evaluation: over an order that may not know
// every text for a version.

/** Compares like a comparator; undefined when one of the two is not a version. */
export type VersionOrder = (one: string, other: string) => number | undefined

/** `introduced` may be `0`, which is before every version. Exactly one member is there. */
export type RangeEvent = { introduced: string } | { fixed: string } | { lastAffected: string } | { limit: string }

/** The events stand in no particular order. */
export type VersionRange = { type: 'ECOSYSTEM' | 'SEMVER'; events: RangeEvent[] }
