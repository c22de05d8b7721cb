// Vulnerability records in a form that is the same for all data sources. Parsers create records, and `records.service.ts` stores
// them.
import type { VersionRange } from '#versions/ranges.ts'

/** A data source, in the form that `beginSource` accepts. */
export type SourceFacts = {
  /** Name of the data source, which never changes, such as `osv/Alpine:v3.19`, `secdb/alpine-3.19` or `debian-tracker`. */
  name: string
  /** URL of the data, without credentials. */
  url: string
  /** The SPDX expression of its license, or `unknown`. */
  licence: string
  /**
   * OSV ecosystems that the source covers, with a release if they have one: `['Alpine:v3.19']`, `['PyPI']`. An entry without a
   * release (`Debian`) covers all releases. An ecosystem that no source covers is a coverage gap.
   */
  ecosystems: string[]
}

/** One record of a data source. All times are ISO 8601 in UTC with milliseconds, and empty if the source has none. */
export type SourceRecord = {
  /** ID in the source: `CVE-2024-1`, `GHSA-…`, `ALPINE-CVE-2024-1`. Unique within the source. */
  id: string
  /** Other IDs of the same vulnerability. */
  aliases: string[]
  /**
   * IDs that the record was made from. Records of distributions name their CVE IDs here. Each of these CVE IDs is a separate
   * vulnerability.
   */
  upstream: string[]
  /** Summary in one line. */
  summary: string
  publishTime: string
  /** Time of the last change at the source. If a new version of a record differs only in this time, the record is unchanged. */
  modifyTime: string
  /** Time at which the source withdrew the record. A withdrawn record affects no package. */
  withdrawTime: string
  /** Severities that apply to all packages of the record. */
  severities: RecordSeverity[]
  /** URLs with http or https, the best first. */
  references: string[]
  affected: AffectedPackage[]
}

export type RecordSeverity = {
  /** Author of the severity, such as `nvd` or `github`. Empty for the source itself. */
  source: string
  type: 'CVSS_V2' | 'CVSS_V3' | 'CVSS_V4'
  /** The CVSS vector in the spelling of the source. */
  vector: string
  /** Base score of the vector from 0 to 10. Undefined if the vector is invalid. */
  score?: number
}

/** Entry of a record on one package in one ecosystem. */
export type AffectedPackage = {
  /**
   * Ecosystem in the spelling of OSV, with the release of a distribution: `Alpine:v3.19`, `Debian:12`, `Wolfi`, `PyPI`, `npm`.
   */
  ecosystem: string
  /** Package name in the ecosystem. For distributions, the name of the source package. PyPI names are normalized (PEP 503). */
  name: string
  /**
   * Version ranges of the types ECOSYSTEM and SEMVER, without Git ranges. The entry applies to a version in any of the ranges.
   */
  ranges: VersionRange[]
  /** Single versions, only if there are no ranges. If there are no ranges and no versions, the entry applies to all versions. */
  versions: string[]
  /**
   * State of these versions. `affected` and `wont_fix` (a fix is not planned) give findings; `not_affected` and `fixed` give
   * none.
   */
  state: AffectedState
  /** Severity that the source states for this package. Empty if it states none. */
  severity: SeverityLevel | ''
  qualifiers: AffectedQualifiers
}

export type AffectedQualifiers = {
  /** The entry applies only to packages for this architecture, in the spelling of the distribution. */
  arch?: string
  /**
   * The entry applies only to packages of these rpm modules, as `name:stream` separated by spaces. Empty if the source does not
   * name modules.
   */
  stream?: string
  /** Parts of the package that have the vulnerability. Shown, but not compared. */
  modules?: string[]
  /** Urgency in the words of the distribution, such as Debian's `unimportant`. Shown, but not compared. */
  urgency?: string
  /** Single versions in the ranges to which the entry does not apply. */
  except?: string[]
}

// The numbers are stored in the database and must not change.
export const affectedStates = { affected: 1, fixed: 2, not_affected: 3, wont_fix: 4 } as const
export type AffectedState = keyof typeof affectedStates

/** Severity numbers of version 1 of the API. 0 is unknown. */
export const severityLevels = { low: 1, medium: 2, high: 3, critical: 4, negligible: 5 } as const
export type SeverityLevel = keyof typeof severityLevels

/**
 * Exploitation data on a vulnerability. Separate data sources provide this data. Days have the format `YYYY-MM-DD`. Probabilities
 * and shares are from 0 to 1.
 */
export type Rank = {
  cve: string
  /** Present if the vulnerability is known to be exploited. */
  exploited?: { addDate: string; dueDate: string; ransomware: boolean }
  /** Probability of exploitation within 30 days. `percentile` is the share of vulnerabilities with at most this probability. */
  likelihood?: { epss: number; percentile: number }
}

/** A run that reads a data source, as input of `putRecords` and `finishSource`. */
export type SourceRun = { sourceNo: number; name: string; generation: number }

/** Result of reading a data source. */
export type SourceEnd = {
  /**
   * Value that the next fetch compares to detect a change, such as an ETag, of at most 512 characters. An error does not change
   * the stored value.
   */
  fingerprint: string
  /** Build time of the data, from the source or its server. Empty if unknown. */
  buildTime: string
  /**
   * True if the run contained all records of the source. Then other records of the source are withdrawn. False for an incremental
   * run.
   */
  complete: boolean
  /**
   * Reason why the source could not be read completely. Empty on success. After an error, the records of earlier runs remain, and
   * answers show their age.
   */
  error: string
}

export type PutCounts = { created: number; updated: number; unchanged: number }

/** Limits on the affected packages, names and texts of one record. A record that exceeds a limit is refused. */
export const recordLimits = { affected: 20_000, names: 1000, events: 2000, versions: 20_000, references: 200 } as const

/**
 * Number of the newest reads of a data source that are all stored, and the number of days for which some older reads are stored.
 */
const keptReads = 1000
const keptDays = 400

/**
 * Selects the reads of a data source that can be deleted, from a list in order. Keeps the newest thousand reads and the first
 * complete read. For 400 days, also keeps the last read and the last complete read of each day. So the state at the end of each
 * day remains known.
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

/** ID, aliases and upstream IDs of a record. */
export type NamedRecord = { id: string; aliases: readonly string[]; upstream: readonly string[] }

/**
 * The vulnerabilities that a record is about, without duplicates. These are its CVE IDs. A record without a CVE ID has one
 * vulnerability, whose ID is the same in records of other sources.
 */
export function vulnerabilityIds({ id, aliases, upstream }: NamedRecord): string[] {
  const names = [...new Set([id, ...aliases, ...upstream])]
  // In Debian's records, the ID of the vulnerability is followed by a slash and the name of a package.
  const cves = names.filter((name) => name.startsWith('CVE-') && !name.includes('/'))
  if (cves.length > 0) return cves.sort()
  const shared = names.filter((name) => name.startsWith('GHSA-')).sort()[0]
  // The uids of our own advisories contain a slash too, and are not used as vulnerability IDs.
  return [shared ?? (id.includes('/') ? (aliases[0] ?? upstream[0]) : undefined) ?? id]
}
