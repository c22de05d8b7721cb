// Vulnerability reports in the format of version 1. Our own reports have an empty scanner name in this format.
import type { Call, Handlers } from '#app.ts'
import {
  RawVulnReportSchema,
  Scanner_Name,
  type VulnCountReport,
  type VulnCountReportFilter,
  type VulnCountReportList,
  VulnCountReportSchema,
  type Vulnerabilities,
  type VulnReport,
  VulnReportSchema,
} from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { isDigest } from '#lib/digest.ts'
import { invalid } from '#lib/errors.ts'
import { toIso } from '#lib/timestamp.ts'
import {
  type CountReport,
  type ImageReport,
  type ReportedVulnerability,
  rawReportPath,
} from '../image-findings/reports.model.ts'
import { severityLevels } from '../records/records.model.ts'
import { listOutside } from '../scan-reports/scan-reports.service.ts'
import { listCounts } from './count-reports.service.ts'
import { createAnswerLimits, listReports } from './image-reports.service.ts'
import { findRaw } from './raw-reports.service.ts'

const toVulnReport = messageOf(VulnReportSchema)
const toRawReport = messageOf(RawVulnReportSchema)
const toCountReport = messageOf(VulnCountReportSchema)

export const vulnReports: Handlers<typeof Vulnerabilities> = {
  async listVulnReports(call, { repoId, digest, tag, scanner, createdSince }) {
    const since = createdSince ? toIso(createdSince) : ''
    const query = { repo: repoId, digest, tag, since }
    // If the request names no scanner, or an unknown scanner, the list contains our own reports and those of other scanners.
    const ours = await listReports(call, query)
    const others = await listOutside(call, { ...query, scanner: scanner?.name, version: scanner?.version ?? '' })
    const wanted = isOurs(scanner?.name) ? [...ours, ...others] : others
    return {
      $typeName: 'pinfold.platform.registry.VulnReportList',
      items: newest(wanted).map((one) => toReport(one, call.app.version)),
    }
  },

  async getRawVulnReport(call, { digest, scanner, createdAt }) {
    if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
    const time = createdAt ? toIso(createdAt) : ''
    const { report, text, ticket } = await findRaw(call, { digest, ours: isOurs(scanner), scanner, time })
    return toRawReport({
      digest,
      scanner: scannerOf(report, call.app.version),
      createdAt: report.createTime,
      rawReport: text,
      rawReportUrl: ticket === '' ? '' : `${call.url}${rawReportPath}${ticket}`,
    })
  },

  listVulnCountReports: (call, filter) => countsFor(call, filter, false),
  listCumulativeVulnCountReports: (call, filter) => countsFor(call, filter, true),
}

/** Merges our own reports and those of other scanners, the newest first, up to the size limits of an answer. */
function newest(reports: readonly ImageReport[]): ImageReport[] {
  const sorted = reports.toSorted((one, other) => {
    return one.createTime === other.createTime ? 0 : one.createTime > other.createTime ? -1 : 1
  })
  const room = createAnswerLimits()
  const cut = sorted.findIndex((report) => !room.takes(report))
  return cut < 0 ? sorted : sorted.slice(0, cut)
}

const isOurs = (name: Scanner_Name | undefined): boolean => name === undefined || name === Scanner_Name.UNKNOWN

async function countsFor(call: Call, filter: VulnCountReportFilter, cumulative: boolean): Promise<VulnCountReportList> {
  const { repo, tag, references, from, to } = filter
  const given = references.length > 0 ? references : repo === '' ? [] : [{ repo, tag }]
  const query = {
    references: given.map((one) => ({ repo: one.repo, tag: one.tag || 'latest' })),
    from: from ? toIso(from) : '',
    to: to ? toIso(to) : '',
  }
  const items = (await listCounts(call, query, cumulative)).map(toCounts)
  return { $typeName: 'pinfold.platform.registry.VulnCountReportList', items }
}

function scannerOf({ buildTime, scanner }: Pick<ImageReport, 'buildTime' | 'scanner'>, version: string) {
  const name = scanner?.name ?? Scanner_Name.UNKNOWN
  return { name, version: scanner?.version ?? `pinfold ${version}`, dbBuildTime: buildTime }
}

function toReport(report: ImageReport, version: string): VulnReport {
  const { digest, createTime, vulnerabilities } = report
  const shown = vulnerabilities.map(shownVulnerability)
  return toVulnReport({ digest, scanner: scannerOf(report, version), createdAt: createTime, vulnerabilities: shown })
}

function shownVulnerability({ packages, summary, references, ...one }: ReportedVulnerability) {
  const cvss = one.cvss.flatMap(({ type, vector, score }) => {
    if (score === undefined) return []
    return [{ score: String(score), version: /^CVSS:(\d\.\d)\//.exec(vector)?.[1] ?? `${type.at(-1)}.0` }]
  })
  return { ...one, purls: packages.map(({ purl }) => purl), description: summary, cvss, relatedUrls: references }
}

function toCounts({ repo, tag, date, sizeBytes, ids }: CountReport): VulnCountReport {
  const { low, medium, high, critical, negligible } = severityLevels
  const of = (level: number) => ids.get(level) ?? []
  return toCountReport({
    repo,
    tag,
    date,
    vulnCounts: [critical, high, medium, low, negligible, 0].map((severity) => ({
      severity,
      count: of(severity).length,
    })),
    sizeBytes,
    cveIds: [...ids.values()].flat().sort(),
    lowCveIds: of(low),
    medCveIds: of(medium),
    highCveIds: of(high),
    critCveIds: of(critical),
    negligibleCveIds: of(negligible),
    unknownCveIds: of(0),
  })
}
