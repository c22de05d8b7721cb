import type { RecordSeverity } from '../records/records.model.ts'

export const vulnReportType = 'registry.pinfold.dev/VulnReport'

/** Something that nothing can be said of, so that it may be vulnerable. */
export type Gap = { reason: string; subject: string; message: string }

/** Whether no data source covers the subject of a gap: records that somebody imported need not be all. */
export const isUncovered = (reason: string): boolean => reason === 'NO_SOURCE' || reason === 'SOURCE_IMPORTED'

/** What is known of one image at one moment. Every vulnerability is there once. */
export type ImageReport = {
  digest: string
  createTime: string
  /** When the oldest source that applies was built; empty when none says so, or when there should be one more. */
  buildTime: string
  /** The last look that has changed nothing. */
  lastSeen: string
  vulnerabilities: ReportedVulnerability[]
  /** Where nothing can be said. */
  gaps: Gap[]
  /** What made it, where that is another scanner: as version 1 numbers them, and by its own name. */
  scanner?: { name: number; tool: string; version: string }
}

export type ReportedVulnerability = {
  /** Its CVE, else the id that all records of it have in common. */
  id: string
  aliases: string[]
  summary: string
  /** What else there is to know of how it was found. */
  details: string
  /** As version 1 counts severities. */
  severity: number
  cvss: RecordSeverity[]
  fix: { state: FixState; versions: string[] }
  references: string[]
  locations: string[]
  packages: ReportedPackage[]
  /** Which records say so, of which sources. */
  records: { source: string; id: string; url: string }[]
}

export type ReportedPackage = { purl: string; name: string; version: string }

/** As version 1 counts them. */
export const fixStates = { unknown: 0, fixed: 1, notFixed: 2, wontFix: 3 } as const
export type FixState = (typeof fixStates)[keyof typeof fixStates]

/** How many reports one answer has at most, and how many vulnerabilities they name together. */
export const maxReports = 200
export const maxVulnerabilities = 50_000
/**
 * How many findings of one list are looked at, those of the past too, and of all images of a question together. In memory
 * that is some 50 MB.
 */
export const maxFindings = 100_000
/** How many findings all lists of a question have, where most lists have the same ones: eight bytes each, and a look a day. */
export const maxHeld = 2_000_000
/** How many lists are read together, and how many findings these may have. */
export const listsAtOnce = 50
export const maxTogether = 20_000
/** Of changes that follow each other so closely the first and the last are told: they come from the same import. */
export const sameChangeMs = 60_000
/** About how many characters a vulnerability takes in an answer, but for its packages. */
export function lengthOf(one: ReportedVulnerability): number {
  const { summary, details, aliases, references, locations, cvss, fix, records } = one
  const texts = [...aliases, ...references, ...locations, ...fix.versions, ...cvss.map(({ vector }) => vector)]
  const named = records.flatMap(({ source, id, url }) => [source, id, url])
  return [summary, details, ...texts, ...named].reduce((sum, text) => sum + text.length, 200)
}

/** The same of its packages. */
export const packagesLength = ({ packages }: ReportedVulnerability): number =>
  packages.reduce((sum, { purl, name, version }) => sum + purl.length + name.length + version.length, 0)

/** Where raw reports are that are too long for an answer; a ticket follows. */
export const rawReportPath = '/downloads/reports/'

/** How many characters a raw report has at most, and about how many any other answer with reports has. */
export const maxRaw = 32 * 1024 * 1024

/** Counts over time, one for each day on which it was known what the image of the tag contains. */
export type CountReport = {
  repo: string
  tag: string
  date: string
  sizeBytes: number
  /** The ids by severity. */
  ids: ReadonlyMap<number, string[]>
}

export const dayMs = 86_400_000
export const maxDays = 366
/** How many tags one question counts, and how many of their moves it looks at. */
export const maxTags = 100
export const maxMoves = 5000
/** How many ids an answer with counts names. */
export const maxCounted = 1_000_000
