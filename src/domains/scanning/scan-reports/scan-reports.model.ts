// Reports of other scanners.

import { worse } from '../findings/severity.model.ts'
import { fixStates, type ImageReport, type ReportedVulnerability } from '../image-findings/reports.model.ts'

// The numbers are stored in the database and must not change.
/** Origins of reports. `attestation`: a layer of the manifest that a cosign tag of the image points to. */
export const reportOrigins = { imported: 1, referrer: 2, scanner: 3, attestation: 4 } as const
export type ReportOrigin = keyof typeof reportOrigins
/**
 * States of reports. `ignored`: the report has no effect, and `reason` says why. `stated`: a VEX document, which has statements
 * but no findings.
 */
export const reportStates = { waiting: 1, read: 2, ignored: 3, stated: 4 } as const
export type ReportState = keyof typeof reportStates

/** Numbers of scanners in version 1 of the API. Other scanners have no number. */
export const scannerNumbers: Readonly<Record<string, number>> = { grype: 1, trivy: 2 }

/** A report to be queued. Its content is a blob of the repository. */
export type NewReport = {
  repo: { id: number; uid: string }
  digest: string
  origin: ReportOrigin
  /** Digest of the manifest that the report was pushed as, or name of the scanner adapter. Empty for imported reports. */
  referrer: string
  /** Digest of the content. Empty if a failed scan has only a reason. */
  rawDigest: string
  actor: string
  /** Build time of the scanner's database, if the scanner states it outside of the report. */
  buildTime?: string
}

/** A report that is queued. */
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

/** Metadata of a report, without its findings. */
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
  /** Time at which the report was parsed. Answers include the report from this time on. */
  createTime: string
  /** Time at which an identical report was last received. */
  seenTime: string
  total: number
  /** Size of the stored findings and statements in bytes. */
  size: number
  /** Number of signatures that can be verified. -1 if the number is unknown. */
  signatures: number
  /** The uids of the trusted signers who have signed the report. */
  signers: string[]
}

export type StoredReport = ReportFacts & { vulnerabilities: ReportedVulnerability[] }

/** A report whose signatures will be verified at `dueTime`. */
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

/** Content of a parsed report. */
export type ReadReport = {
  scanner: number
  tool: string
  toolVersion: string
  format: string
  buildTime: string
  total: number
  /** Findings as JSON. Equal findings give the same text. */
  vulnerabilities: string
  /** Severities as JSON: pairs of vulnerability ID and severity. */
  levels: string
  /** VEX statements as JSON. Empty if the report has none. */
  statements: string
  signatures: number
  /** Note on parts of the report that were left out. */
  note: string
}

/** Statement of a VEX document on one vulnerability. */
export type StatedVulnerability = {
  vulnerability: string
  aliases: string[]
  status: 'not_affected' | 'affected' | 'fixed' | 'under_investigation'
  justification: string
  text: string
  /** Package URLs or other names of the products. Empty if the statement is about the image. */
  products: string[]
  /** For each product, the product that contains it. Empty for a product that no other product contains. */
  within?: string[]
}

/** Size of the stored content in bytes. */
export const sizeOf = ({
  vulnerabilities,
  levels,
  statements,
}: Pick<ReadReport, 'vulnerabilities' | 'levels' | 'statements'>): number =>
  Buffer.byteLength(vulnerabilities) + Buffer.byteLength(levels) + Buffer.byteLength(statements)

/** Converts the report of another scanner to the form of our own reports. */
export function toImageReport({ digest, createTime, seenTime, buildTime, ...one }: StoredReport): ImageReport {
  return {
    ...{ digest, createTime, buildTime, lastSeen: seenTime, vulnerabilities: one.vulnerabilities, gaps: [] },
    scanner: { name: one.scanner, tool: one.tool || 'unknown', version: versionOf(one) },
  }
}

/** Scanner version for version 1 of the API. If a scanner has no number there, its name precedes the version. */
export const versionOf = ({ scanner, tool, toolVersion }: Pick<ReportFacts, 'scanner' | 'tool' | 'toolVersion'>) =>
  scanner === 0 ? `${tool || 'unknown'} ${toolVersion}`.trim() : toolVersion

const mostTools = 20

/**
 * The newest report of each tool, for at most `mostTools` tools. `reports` must be sorted from new to old. Several tools are
 * included, because each can find other vulnerabilities.
 */
export function newestOfEach<R extends Pick<ReportFacts, 'tool'>>(reports: readonly R[]): R[] {
  const tools = new Map<string, R>()
  for (const one of reports) if (!tools.has(one.tool)) tools.set(one.tool, one)
  return [...tools.values()].slice(0, mostTools)
}

/** Limits on the stored reports of one image, by state. */
export const mostKept = { read: 400, ignored: 20, stated: 50 }
/** Limit on the queued reports of an organization. */
export const mostWaiting = 1000
/**
 * Limits on the report content that one request reads, in bytes. `listed` is for lists of reports, `counted` for counts by day.
 */
export const mostBytes = { listed: 32 * 2 ** 20, counted: 256 * 2 ** 20 }
/** Size limit of a report in bytes. */
export const maxReportBytes = 32 * 2 ** 20
/** Limit on the attestations of one manifest that are queued. If there are more, the last ones are queued. */
export const mostAttestations = 20

/** Artifact types of scan reports that refer to an image. The report format is detected from the content. */
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

/** Merges reports, the newest first, into one report with one entry for each vulnerability. */
export function joinReports(reports: readonly [ImageReport, ...ImageReport[]]): ImageReport {
  const [newest, ...others] = reports
  if (others.length === 0) return newest
  const byId = new Map<string, ReportedVulnerability>()
  for (const one of reports.flatMap(({ vulnerabilities }) => vulnerabilities)) {
    const before = byId.get(one.id)
    byId.set(one.id, before ? join(before, one) : one)
  }
  const builds = reports.map(({ buildTime }) => buildTime)
  const ofScanner = (of: (scanner: NonNullable<ImageReport['scanner']>) => string): string =>
    reports.map(({ scanner }) => (scanner ? of(scanner) : '')).join(', ')
  return {
    ...newest,
    // If one report has no build time, the age of the oldest database is unknown.
    buildTime: builds.includes('') ? '' : builds.sort()[0]!,
    vulnerabilities: [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1)),
    scanner: { name: 0, tool: ofScanner(({ tool }) => tool), version: ofScanner(({ version }) => version) },
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

/** States of a fix, the weakest first. If the reports have different states, the strongest one is used. */
const weights = [fixStates.unknown, fixStates.wontFix, fixStates.notFixed, fixStates.fixed] as const
