// Reports of other scanners.
import type { ImageReport, ReportedVulnerability } from '../reports/reports.model.ts'

// The numbers are stored; they keep their meaning for good.
export const reportOrigins = { imported: 1, referrer: 2, scanner: 3 } as const
export type ReportOrigin = keyof typeof reportOrigins
/** `ignored`: it counts for nothing, and why is with it. */
export const reportStates = { waiting: 1, read: 2, ignored: 3 } as const
export type ReportState = keyof typeof reportStates

/** The scanners that version 1 has a name for, as it numbers them. */
export const scannerNumbers: Readonly<Record<string, number>> = { grype: 1, trivy: 2 }

/** One to take in: whose content the repo has as a blob. */
export type NewReport = {
  repo: { id: number; uid: string }
  digest: string
  origin: ReportOrigin
  /** The manifest that it was pushed as; empty for others. */
  referrer: string
  rawDigest: string
  actor: string
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
}

export type StoredReport = ReportFacts & { vulnerabilities: ReportedVulnerability[] }

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
}

/** The report of another scanner, as reports of ours are shown. */
export function toImageReport({ digest, createTime, seenTime, buildTime, ...one }: StoredReport): ImageReport {
  const { scanner, tool, toolVersion, vulnerabilities } = one
  const version = scanner === 0 ? `${tool || 'unknown'} ${toolVersion}`.trim() : toolVersion
  return {
    ...{ digest, createTime, buildTime, lastSeen: seenTime, vulnerabilities, gaps: [] },
    scanner: { name: scanner, tool: tool || 'unknown', version },
  }
}

/** How many reports of one image are kept, and how many of those that count for nothing. */
export const mostKept = { read: 400, ignored: 20 }
/** How many wait for each organisation. */
export const mostWaiting = 1000
/** How large a report may be. */
export const maxReportBytes = 32 * 2 ** 20

/** What reports call themselves that refer to an image. What they are shows in them. */
export const reportTypes: readonly string[] = [
  'application/vnd.cyclonedx+json',
  'application/sarif+json',
  'application/vnd.cosign.vuln.v1+json',
  'application/vnd.aquasec.trivy.report+json',
  'application/vnd.aquasecurity.trivy.report+json',
  'application/vnd.anchore.grype.report+json',
  'application/vnd.syft.grype+json',
]
