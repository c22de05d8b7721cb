// What a source says of a vulnerability, whatever its own format is. A parser makes these; `records.service.ts` keeps them.
import type { VersionRange } from '#versions/ranges.ts'

/** A source, as `beginSource` takes it. */
export type SourceFacts = {
  /** What it is known by for good, such as `osv/Alpine:v3.19`, `secdb/alpine-3.19` or `debian-tracker`. */
  name: string
  /** Where it was read from, without credentials. */
  url: string
  /** The SPDX expression of its licence, or `unknown`. */
  licence: string
  /**
   * The ecosystems of OSV that it speaks of, with the release where it has one: `['Alpine:v3.19']`, `['PyPI']`. An entry
   * without a release (`Debian`) stands for all releases. What no source speaks of is shown as a gap in coverage.
   */
  ecosystems: string[]
}

/** One record of a source. All times are ISO 8601 in UTC with milliseconds, and empty when the source does not say them. */
export type SourceRecord = {
  /** Its id in the source: `CVE-2024-1`, `GHSA-…`, `ALPINE-CVE-2024-1`. Unique within the source. */
  id: string
  /** Other ids of the same vulnerability. */
  aliases: string[]
  /** The ids that it was made from: records of distributions name their CVEs here. Each is a vulnerability of its own. */
  upstream: string[]
  /** One line. */
  summary: string
  publishTime: string
  /** Not compared: a record that differs in nothing else counts as unchanged. */
  modifyTime: string
  /** When the source took it back; then `affected` counts for nothing. */
  withdrawTime: string
  /** Of the record as a whole. */
  severities: RecordSeverity[]
  /** URLs of http or https, the best first. */
  references: string[]
  affected: AffectedPackage[]
}

export type RecordSeverity = {
  /** Who says so, such as `nvd` or `github`; empty when it is the source itself. */
  source: string
  type: 'CVSS_V2' | 'CVSS_V3' | 'CVSS_V4'
  /** The vector as it is written. */
  vector: string
  /** The base score from 0 to 10 that it stands for; undefined when the vector cannot be read. */
  score?: number
}

/** What a record says of one package in one ecosystem. */
export type AffectedPackage = {
  /** As OSV spells it, with the release of a distribution: `Alpine:v3.19`, `Debian:12`, `Wolfi`, `PyPI`, `npm`. */
  ecosystem: string
  /** The name in that ecosystem; of distributions that of the source package. PyPI names are normalised (PEP 503). */
  name: string
  /** Of the types ECOSYSTEM and SEMVER; those of GIT are left out. A version in any of them counts. */
  ranges: VersionRange[]
  /** Versions one by one, only where there are no ranges. Without ranges and versions all versions are meant. */
  versions: string[]
  /**
   * What is said of these versions: `affected` and `wont_fix` (nobody is going to fix it) are findings, `not_affected`
   * and `fixed` say that there is none.
   */
  state: AffectedState
  /** How bad the source itself calls it for this package; empty when it does not. */
  severity: SeverityLevel | ''
  qualifiers: AffectedQualifiers
}

export type AffectedQualifiers = {
  /** Only packages for this architecture, in the words of the distribution. */
  arch?: string
  /** Only packages of these modules of rpm, `name:stream` with spaces between; empty when the source does not say which. */
  stream?: string
  /** Only these modules or parts of the package; shown, not compared. */
  modules?: string[]
  /** The distribution's word for how pressing it is, such as Debian's `unimportant`; shown, not compared. */
  urgency?: string
  /** Single versions that are not meant, though the ranges have them. */
  except?: string[]
}

// The numbers are stored; they keep their meaning for good.
export const affectedStates = { affected: 1, fixed: 2, not_affected: 3, wont_fix: 4 } as const
export type AffectedState = keyof typeof affectedStates

/** As version 1 counts severities; 0 is unknown. */
export const severityLevels = { low: 1, medium: 2, high: 3, critical: 4, negligible: 5 } as const
export type SeverityLevel = keyof typeof severityLevels

/** How likely a vulnerability is to be used, as a source of its own says. Days are `YYYY-MM-DD`, shares from 0 to 1. */
export type Rank = {
  cve: string
  /** It is being used. */
  exploited?: { addDate: string; dueDate: string; ransomware: boolean }
  /** How likely it is used within a month, and how many are no more likely to be. */
  likelihood?: { epss: number; percentile: number }
}

/** A source that is being read; `putRecords` and `finishSource` take it. */
export type SourceRun = { sourceNo: number; name: string; generation: number }

/** How reading a source ended. */
export type SourceEnd = {
  /** What the next fetch compares, such as an ETag; at most 512 characters. Kept as it was when there is an error. */
  fingerprint: string
  /** When the source was built, as it says or as the server that has it says; empty when unknown. */
  buildTime: string
  /**
   * True when the records of this run are all that the source has, so that those which were not among them count as
   * withdrawn. False for an incremental run.
   */
  complete: boolean
  /** Why it could not be read to its end; empty when it was. What is known then stays, and its age shows. */
  error: string
}

export type PutCounts = { created: number; updated: number; unchanged: number }

/** More affected packages, names or texts than this and a record is refused. */
export const recordLimits = { affected: 20_000, names: 1000, events: 2000, versions: 20_000, references: 200 } as const

/** Readings of a source that are kept as they were; of those before, less. */
const keptReads = 1000
const keptDays = 400

/**
 * Which of the readings of a source nobody needs, given the oldest first: behind the newest thousand all but the last of each
 * day, of 400 days, and the first. What was known at the end of a day stays what it was, and so does since when it was known.
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

/** A record as far as its names go. */
export type NamedRecord = { id: string; aliases: readonly string[]; upstream: readonly string[] }

/**
 * The vulnerabilities that a record is about, each once: its CVEs; without any, one id that records of other sources
 * about the same choose as well.
 */
export function vulnerabilityIds({ id, aliases, upstream }: NamedRecord): string[] {
  const names = [...new Set([id, ...aliases, ...upstream])]
  // Debian's records have the name of a package behind that of the vulnerability.
  const cves = names.filter((name) => name.startsWith('CVE-') && !name.includes('/'))
  if (cves.length > 0) return cves.sort()
  const shared = names.filter((name) => name.startsWith('GHSA-')).sort()[0]
  // Nor does anybody know a vulnerability by the uids of our own advisories.
  return [shared ?? (id.includes('/') ? (aliases[0] ?? upstream[0]) : undefined) ?? id]
}
