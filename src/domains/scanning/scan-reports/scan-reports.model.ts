// Reports of other scanners.

import { worse } from '../findings/severity.model.ts'
import { fixStates, type ImageReport, type ReportedVulnerability } from '../image-findings/reports.model.ts'

// The numbers are stored; they keep their meaning for good.
/** `attestation`: a layer of what a tag has for an image. */
export const reportOrigins = { imported: 1, referrer: 2, scanner: 3, attestation: 4 } as const
export type ReportOrigin = keyof typeof reportOrigins
/**
 * `ignored`: it counts for nothing, and why is with it. `stated`: it says what was made of vulnerabilities, and of none that it was
 * found.
 */
export const reportStates = { waiting: 1, read: 2, ignored: 3, stated: 4 } as const
export type ReportState = keyof typeof reportStates

/** The scanners that version 1 has a name for, as it numbers them. */
export const scannerNumbers: Readonly<Record<string, number>> = { grype: 1, trivy: 2 }

/** One to take in: whose content the repo has as a blob. */
export type NewReport = {
  repo: { id: number; uid: string }
  digest: string
  origin: ReportOrigin
  /** The manifest that it was pushed as, or the name of the scanner that was asked; empty for others. */
  referrer: string
  /** Empty where there is none, and only why is told. */
  rawDigest: string
  actor: string
  /** When the scanner's database was built, where that is known otherwise than by the report. */
  buildTime?: string
}

/** One that waits to be read. */
export type WaitingReport = {
  id: number
  repo: number
  organization: string
  digest: string
  origin: number
  referrer: string
  rawDigest: string
  attempts: number
  buildTime: string
}

/** What is known of one, but for what it says. */
export type ReportFacts = {
  id: number
  repo: number
  digest: string
  origin: ReportOrigin
  referrer: string
  rawDigest: string
  actor: string
  takeTime: string
  state: ReportState
  reason: string
  message: string
  scanner: number
  tool: string
  toolVersion: string
  format: string
  buildTime: string
  /** When it was read: from then on it counts. */
  createTime: string
  /** When the same was last said again. */
  seenTime: string
  total: number
  /** How many bytes are kept of what it says. */
  size: number
  /** How many signatures it came with that can be looked at; -1 where nobody has. */
  signatures: number
  /** The uids of the signers who were trusted and have signed it. */
  signers: string[]
}

export type StoredReport = ReportFacts & { vulnerabilities: ReportedVulnerability[] }

/** One whose signatures are to be looked at from `dueTime`. */
export type UncheckedReport = {
  id: number
  repo: number
  repoUid: string
  organization: string
  digest: string
  rawDigest: string
  createTime: string
  attempts: number
  dueTime: string
}

/** What a report says once it was read. */
export type ReadReport = {
  scanner: number
  tool: string
  toolVersion: string
  format: string
  buildTime: string
  total: number
  /** As JSON, the same text for the same findings. */
  vulnerabilities: string
  /** How bad each is, as JSON: pairs of its id and its severity. */
  levels: string
  /** What was made of them, as JSON; empty where nothing is said of that. */
  statements: string
  signatures: number
  /** What was left out of sight of it. */
  note: string
}

/** What a document says was made of one vulnerability. */
export type StatedVulnerability = {
  vulnerability: string
  aliases: string[]
  status: 'not_affected' | 'affected' | 'fixed' | 'under_investigation'
  justification: string
  text: string
  /** Package URLs, or what else names what it is said of; none for the image. */
  products: string[]
  /** For each of them the product that it is a part of; empty for what is none. */
  within?: string[]
}

/** How many bytes are kept of what it says. */
export const sizeOf = ({
  vulnerabilities,
  levels,
  statements,
}: Pick<ReadReport, 'vulnerabilities' | 'levels' | 'statements'>): number =>
  Buffer.byteLength(vulnerabilities) + Buffer.byteLength(levels) + Buffer.byteLength(statements)

/** The report of another scanner, as reports of ours are shown. */
export function toImageReport({ digest, createTime, seenTime, buildTime, ...one }: StoredReport): ImageReport {
  return {
    ...{ digest, createTime, buildTime, lastSeen: seenTime, vulnerabilities: one.vulnerabilities, gaps: [] },
    scanner: { name: one.scanner, tool: one.tool || 'unknown', version: versionOf(one) },
  }
}

/** As version 1 says it: a scanner that it has no name for has its own before the version. */
export const versionOf = ({ scanner, tool, toolVersion }: Pick<ReportFacts, 'scanner' | 'tool' | 'toolVersion'>) =>
  scanner === 0 ? `${tool || 'unknown'} ${toolVersion}`.trim() : toolVersion

const mostTools = 20

/** Of reports that count, the newest first, the first of each tool: what one has not looked for another may have. */
export function newestOfEach<R extends Pick<ReportFacts, 'tool'>>(reports: readonly R[]): R[] {
  const tools = new Map<string, R>()
  for (const one of reports) if (!tools.has(one.tool)) tools.set(one.tool, one)
  return [...tools.values()].slice(0, mostTools)
}

/** How many reports of one image are kept, how many of those that count for nothing, and how many that only state something. */
export const mostKept = { read: 400, ignored: 20, stated: 50 }
/** How many wait for each organisation. */
export const mostWaiting = 1000
/** How much of what reports say is looked at for one question, in bytes: as a list, and as counts. */
export const mostBytes = { listed: 32 * 2 ** 20, counted: 256 * 2 ** 20 }
/** How large a report may be. */
export const maxReportBytes = 32 * 2 ** 20
/** How many of the attestations that a tag has for an image are looked at, the last of them. */
export const mostAttestations = 20

/** What reports call themselves that refer to an image. What they are shows in them. */
export const reportTypes: readonly string[] = [
  'application/vnd.cyclonedx+json',
  'application/sarif+json',
  'application/vnd.cosign.vuln.v1+json',
  'application/vnd.aquasec.trivy.report+json',
  'application/vnd.aquasecurity.trivy.report+json',
  'application/vnd.anchore.grype.report+json',
  'application/vnd.syft.grype+json',
  'application/vnd.openvex+json',
  'application/csaf+json',
]

/** All that they say, each vulnerability once. `reports` are some, the newest first. */
export function joinReports(reports: readonly [ImageReport, ...ImageReport[]]): ImageReport {
  const [newest, ...others] = reports
  if (others.length === 0) return newest
  const byId = new Map<string, ReportedVulnerability>()
  for (const one of reports.flatMap(({ vulnerabilities }) => vulnerabilities)) {
    const before = byId.get(one.id)
    byId.set(one.id, before ? join(before, one) : one)
  }
  const builds = reports.map(({ buildTime }) => buildTime)
  const said = (of: (scanner: NonNullable<ImageReport['scanner']>) => string): string =>
    reports.map(({ scanner }) => (scanner ? of(scanner) : '')).join(', ')
  return {
    ...newest,
    // Of one that does not say it nobody knows how old it is.
    buildTime: builds.includes('') ? '' : builds.sort()[0]!,
    vulnerabilities: [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1)),
    scanner: { name: 0, tool: said(({ tool }) => tool), version: said(({ version }) => version) },
  }
}

function join(one: ReportedVulnerability, other: ReportedVulnerability): ReportedVulnerability {
  const purls = new Set(one.packages.map(({ purl }) => purl))
  return {
    id: one.id,
    aliases: [...new Set([...one.aliases, ...other.aliases])].sort(),
    summary: one.summary || other.summary,
    details: one.details || other.details,
    severity: worse(one.severity, other.severity),
    cvss: [...one.cvss, ...other.cvss],
    fix: {
      state: weights.indexOf(other.fix.state) > weights.indexOf(one.fix.state) ? other.fix.state : one.fix.state,
      versions: [...new Set([...one.fix.versions, ...other.fix.versions])],
    },
    references: [...new Set([...one.references, ...other.references])],
    locations: [...new Set([...one.locations, ...other.locations])],
    packages: [...one.packages, ...other.packages.filter(({ purl }) => !purls.has(purl))],
    records: [...one.records, ...other.records],
  }
}

/** Fixed for one is fixed. */
const weights = [fixStates.unknown, fixStates.wontFix, fixStates.notFixed, fixStates.fixed] as const
