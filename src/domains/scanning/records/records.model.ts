// Vulnerability records of data sources, independent of their formats. Parsers create them, and `records.service.ts` stores them.
import type { VersionRange } from '#versions/ranges.ts'

/** A data source, as `beginSource` takes it. */
export type SourceFacts = {
  /** Permanent name, such as `osv/Alpine:v3.19`, `secdb/alpine-3.19` or `debian-tracker`. */
  name: string
  /** URL of the data, without credentials. */
  url: string
  /** The SPDX expression of its license, or `unknown`. */
  licence: string
  /**
   * OSV ecosystems that the source covers, with a release if they have one: `['Alpine:v3.19']`, `['PyPI']`. An entry without a
   * release (`Debian`) covers all releases. Ecosystems without a data source are coverage gaps.
   */
  ecosystems: string[]
}

/** One record of a data source. All times are ISO 8601 in UTC with milliseconds, and empty if the source has none. */
export type SourceRecord = {
  /** ID in the source: `CVE-2024-1`, `GHSA-…`, `ALPINE-CVE-2024-1`. Unique within the source. */
  id: string
  /** Other IDs of the same vulnerability. */
  aliases: string[]
  /** IDs that the record was made from. Records of distributions name their CVEs here, each a vulnerability of its own. */
  upstream: string[]
  /** One line. */
  summary: string
  publishTime: string
  /** Not compared: a record in which only this time differs counts as unchanged. */
  modifyTime: string
  /** Time at which the source withdrew the record. `affected` has no effect then. */
  withdrawTime: string
  /** Severities of the whole record. */
  severities: RecordSeverity[]
  /** URLs with http or https, the best first. */
  references: string[]
  affected: AffectedPackage[]
}

export type RecordSeverity = {
  /** Author of the severity, such as `nvd` or `github`. Empty for the source itself. */
  source: string
  type: 'CVSS_V2' | 'CVSS_V3' | 'CVSS_V4'
  /** The CVSS vector as written. */
  vector: string
  /** Base score of the vector from 0 to 10. Undefined if the vector is invalid. */
  score?: number
}

/** Entry of a record on one package in one ecosystem. */
export type AffectedPackage = {
  /** As OSV spells it, with the release of a distribution: `Alpine:v3.19`, `Debian:12`, `Wolfi`, `PyPI`, `npm`. */
  ecosystem: string
  /** Name in that ecosystem. For distributions, the name of the source package. PyPI names are normalized (PEP 503). */
  name: string
  /** Ranges of the types ECOSYSTEM and SEMVER. Git ranges are left out. A version in any of them counts. */
  ranges: VersionRange[]
  /** Single versions, only if there are no ranges. Without ranges and versions, all versions count. */
  versions: string[]
  /**
   * State of these versions. `affected` and `wont_fix` (a fix is not planned) give findings; `not_affected` and `fixed` give
   * none.
   */
  state: AffectedState
  /** The source's own severity for this package. Empty if it has none. */
  severity: SeverityLevel | ''
  qualifiers: AffectedQualifiers
}

export type AffectedQualifiers = {
  /** Only packages for this architecture, as the distribution names it. */
  arch?: string
  /** Only packages of these rpm modules, `name:stream` separated by spaces. Empty if the source does not name them. */
  stream?: string
  /** Only these modules or parts of the package. Shown, but not compared. */
  modules?: string[]
  /** Urgency as the distribution states it, such as Debian's `unimportant`. Shown, but not compared. */
  urgency?: string
  /** Single versions in the ranges that are excluded. */
  except?: string[]
}

// The numbers are stored and must not change.
export const affectedStates = { affected: 1, fixed: 2, not_affected: 3, wont_fix: 4 } as const
export type AffectedState = keyof typeof affectedStates

/** As numbered in version 1 of the API. 0 is unknown. */
export const severityLevels = { low: 1, medium: 2, high: 3, critical: 4, negligible: 5 } as const
export type SeverityLevel = keyof typeof severityLevels

/** Exploitation data on a vulnerability, from data sources of its own. Days are `YYYY-MM-DD`, shares from 0 to 1. */
export type Rank = {
  cve: string
  /** Present if the vulnerability is known to be exploited. */
  exploited?: { addDate: string; dueDate: string; ransomware: boolean }
  /** Probability of exploitation within 30 days, and the share of vulnerabilities with at most that probability. */
  likelihood?: { epss: number; percentile: number }
}

/** A data source that is being read. `putRecords` and `finishSource` take it. */
export type SourceRun = { sourceNo: number; name: string; generation: number }

/** Result of reading a data source. */
export type SourceEnd = {
  /** Value that the next fetch compares, such as an ETag, of at most 512 characters. Unchanged after an error. */
  fingerprint: string
  /** Build time of the data, from the source or its server. Empty if unknown. */
  buildTime: string
  /**
   * True if the records of this run are all records of the source. Records that were not among them are then withdrawn. False for
   * an incremental run.
   */
  complete: boolean
  /** Reason why the source could not be read completely. Empty on success. The known records stay, and their age is shown. */
  error: string
}

export type PutCounts = { created: number; updated: number; unchanged: number }

/** A record with more affected packages, names or texts than this is refused. */
export const recordLimits = { affected: 20_000, names: 1000, events: 2000, versions: 20_000, references: 200 } as const

/** Recent reads of a data source that are stored without thinning, and the days for which older ones are stored. */
const keptReads = 1000
const keptDays = 400

/**
 * Reads of a data source that can be deleted, from a list in order. The newest thousand reads and the first complete one stay.
 * For 400 days, the last read and the last complete read of a day stay too, so that the state at the end of each day is
 * preserved.
 */
export function readsToDrop(reads: readonly { fetchTime: string; whole: boolean }[]): string[] {
  const old = reads.slice(0, -keptReads)
  const dayOf = ({ fetchTime }: { fetchTime: string }) => fetchTime.slice(0, 10)
  const lastOf = new Map(old.map((one) => [dayOf(one), one]))
  const lastWholeOf = new Map(old.filter(({ whole }) => whole).map((one) => [dayOf(one), one]))
  const days = new Set([...lastOf.keys()].sort().slice(-keptDays))
  const first = old.find(({ whole }) => whole)
  const isKept = (one: { fetchTime: string; whole: boolean }): boolean =>
    one === first || (days.has(dayOf(one)) && (lastOf.get(dayOf(one)) === one || lastWholeOf.get(dayOf(one)) === one))
  return old.filter((one) => !isKept(one)).map(({ fetchTime }) => fetchTime)
}

/** Names of a record. */
export type NamedRecord = { id: string; aliases: readonly string[]; upstream: readonly string[] }

/**
 * The vulnerabilities that a record is about, without duplicates: its CVE IDs. If it has none, one ID that records of other
 * sources on the same vulnerability share.
 */
export function vulnerabilityIds({ id, aliases, upstream }: NamedRecord): string[] {
  const names = [...new Set([id, ...aliases, ...upstream])]
  // Debian's records have the name of a package after that of the vulnerability.
  const cves = names.filter((name) => name.startsWith('CVE-') && !name.includes('/'))
  if (cves.length > 0) return cves.sort()
  const shared = names.filter((name) => name.startsWith('GHSA-')).sort()[0]
  // The uids of our own advisories are not known as vulnerability IDs either.
  return [shared ?? (id.includes('/') ? (aliases[0] ?? upstream[0]) : undefined) ?? id]
}
