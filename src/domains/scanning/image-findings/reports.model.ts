import type { RecordSeverity } from '../records/records.model.ts'

export const vulnReportType = 'registry.pinfold.dev/VulnReport'

/** Coverage gap: a part of an image that was not scanned, so the part may have vulnerabilities. */
export type Gap = { reason: string; subject: string; message: string }

/**
 * True if no data source covers the packages that the gap names. Imported records do not cover packages, because the records need
 * not be complete.
 */
export const isUncovered = (reason: string): boolean => reason === 'NO_SOURCE' || reason === 'SOURCE_IMPORTED'

/** Findings in one image at one time. Each vulnerability occurs once. */
export type ImageReport = {
  digest: string
  createTime: string
  /**
   * Build time of the oldest data source that covers the image's packages. Empty if no source states its build time, or if a data
   * source is missing.
   */
  buildTime: string
  /** Time of the last scan with the same result. */
  lastSeen: string
  vulnerabilities: ReportedVulnerability[]
  /** Coverage gaps of the image. */
  gaps: Gap[]
  /**
   * External scanner that made the report, with its number in version 1 of the API and its name. Undefined for our own reports.
   */
  scanner?: { name: number; tool: string; version: string }
}

export type ReportedVulnerability = {
  /** The CVE ID. Without a CVE ID, an ID that all records of the vulnerability have in common. */
  id: string
  aliases: string[]
  summary: string
  /** More information on how the vulnerability was found. */
  details: string
  /** Severity number of version 1 of the API. */
  severity: number
  cvss: RecordSeverity[]
  fix: { state: FixState; versions: string[] }
  references: string[]
  locations: string[]
  packages: ReportedPackage[]
  /** Records of the vulnerability, with their data sources. */
  records: { source: string; id: string; url: string }[]
}

export type ReportedPackage = { purl: string; name: string; version: string }

/** Numbers of the fix states in version 1 of the API. */
export const fixStates = { unknown: 0, fixed: 1, notFixed: 2, wontFix: 3 } as const
export type FixState = (typeof fixStates)[keyof typeof fixStates]

/** Limits on the reports in one answer, and on the vulnerabilities in all of them. */
export const maxReports = 200
export const maxVulnerabilities = 50_000
/**
 * Limits on the present and former findings of one list, and of all images in one request. In memory, these findings take about
 * 50 MB.
 */
export const maxFindings = 100_000
/**
 * Limit on the findings in one request, counted once for each list with the finding. Each takes eight bytes, and is processed
 * once per day.
 */
export const maxHeld = 2_000_000
/** Limits on the lists that one query reads, and on their findings. */
export const listsAtOnce = 50
export const maxTogether = 20_000
/** Maximum duration of an import in ms. Only the first and the last change in this time have a report. */
export const sameChangeMs = 60_000
/** Approximate number of characters of a vulnerability in an answer, without its packages. */
export function lengthOf(one: ReportedVulnerability): number {
  const { summary, details, aliases, references, locations, cvss, fix, records } = one
  const texts = [...aliases, ...references, ...locations, ...fix.versions, ...cvss.map(({ vector }) => vector)]
  const named = records.flatMap(({ source, id, url }) => [source, id, url])
  return [summary, details, ...texts, ...named].reduce((sum, text) => sum + text.length, 200)
}

/** Approximate number of characters of the packages of a vulnerability. */
export const packagesLength = ({ packages }: ReportedVulnerability): number =>
  packages.reduce((sum, { purl, name, version }) => sum + purl.length + name.length + version.length, 0)

/** Path for downloads of raw reports that are too long for an answer. The ticket of the report follows. */
export const rawReportPath = '/downloads/reports/'

/** Limit on the characters of a raw report. Also the approximate limit of any other answer with reports. */
export const maxRaw = 32 * 1024 * 1024

/**
 * Number of vulnerabilities in the image of a tag on one day. A day on which the image's packages were unknown has no such
 * report.
 */
export type CountReport = {
  repo: string
  tag: string
  date: string
  sizeBytes: number
  /** IDs of vulnerabilities by severity. */
  ids: ReadonlyMap<number, string[]>
}

export const dayMs = 86_400_000
export const maxDays = 366
/** Limits on the tags that one request counts, and on the tag updates that it reads. */
export const maxTags = 100
export const maxMoves = 5000
/** Limit on the IDs in an answer with counts. */
export const maxCounted = 1_000_000
