// Reports of vulnerabilities as version 1 has them. Our own has no name among its scanners.
import type { Call, Handlers } from '#app.ts'
import {
  type Scanner,
  Scanner_Name,
  type VulnCountReport,
  type VulnCountReportFilter,
  type VulnCountReportList,
  type Vulnerabilities,
  type Vulnerability,
  type VulnReport,
} from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { isDigest } from '#lib/digest.ts'
import { invalid } from '#lib/errors.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import {
  type CountReport,
  type ImageReport,
  type ReportedVulnerability,
  rawReportPath,
} from '../known/reports.model.ts'
import { listOutside } from '../outside/scan-reports.service.ts'
import { severityLevels } from '../records/records.model.ts'
import { listCounts } from './count-reports.service.ts'
import { listReports, roomForReports } from './image-reports.service.ts'
import { findRaw } from './raw-reports.service.ts'

export const vulnReports: Handlers<typeof Vulnerabilities> = {
  async listVulnReports(call, { repoId, digest, tag, scanner, createdSince }) {
    const since = createdSince ? toIso(createdSince) : ''
    const query = { repo: repoId, digest, tag, since }
    // Without a scanner, or with one that has no name, they are asked for as well as ours.
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
    return {
      $typeName: 'pinfold.platform.registry.RawVulnReport',
      digest,
      scanner: scannerOf(report, call.app.version),
      createdAt: timestamp(report.createTime),
      rawReport: text,
      rawReportUrl: ticket === '' ? '' : `${call.url}${rawReportPath}${ticket}`,
    }
  },

  listVulnCountReports: (call, filter) => countsFor(call, filter, false),
  listCumulativeVulnCountReports: (call, filter) => countsFor(call, filter, true),
}

/** Ours and others' together, within what an answer has room for. */
function newest(reports: readonly ImageReport[]): ImageReport[] {
  const sorted = reports.toSorted((one, other) => {
    return one.createTime === other.createTime ? 0 : one.createTime > other.createTime ? -1 : 1
  })
  const room = roomForReports()
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

function scannerOf({ buildTime, scanner }: Pick<ImageReport, 'buildTime' | 'scanner'>, version: string): Scanner {
  return {
    $typeName: 'pinfold.platform.registry.Scanner',
    name: (scanner?.name ?? Scanner_Name.UNKNOWN) as Scanner_Name,
    version: scanner?.version ?? `pinfold ${version}`,
    ...(buildTime === '' ? {} : { dbBuildTime: timestamp(buildTime) }),
  }
}

function toReport(report: ImageReport, version: string): VulnReport {
  return {
    $typeName: 'pinfold.platform.registry.VulnReport',
    digest: report.digest,
    scanner: scannerOf(report, version),
    createdAt: timestamp(report.createTime),
    vulnerabilities: report.vulnerabilities.map(toVulnerability),
  }
}

function toVulnerability(one: ReportedVulnerability): Vulnerability {
  const { id, aliases, packages, summary, details, severity, cvss, fix, references, locations } = one
  return {
    $typeName: 'pinfold.platform.registry.Vulnerability',
    id,
    aliases,
    purls: packages.map(({ purl }) => purl),
    description: summary,
    details,
    severity: severity as Vulnerability['severity'],
    cvss: cvss.flatMap(({ type, vector, score }) => {
      if (score === undefined) return []
      const version = /^CVSS:(\d\.\d)\//.exec(vector)?.[1] ?? `${type.at(-1)}.0`
      return [{ $typeName: 'pinfold.platform.registry.Vulnerability.CVSS' as const, score: String(score), version }]
    }),
    fix: { $typeName: 'pinfold.platform.registry.Vulnerability.Fix', ...fix },
    relatedUrls: references,
    locations,
  }
}

function toCounts({ repo, tag, date, sizeBytes, ids }: CountReport): VulnCountReport {
  const { low, medium, high, critical, negligible } = severityLevels
  const of = (level: number) => ids.get(level) ?? []
  return {
    $typeName: 'pinfold.platform.registry.VulnCountReport',
    repo,
    tag,
    date: timestamp(date),
    vulnCounts: [critical, high, medium, low, negligible, 0].map((severity) => ({
      $typeName: 'pinfold.platform.registry.VulnCount',
      severity: severity as Vulnerability['severity'],
      count: of(severity).length,
    })),
    sizeBytes: BigInt(sizeBytes),
    cveIds: [...ids.values()].flat().sort(),
    lowCveIds: of(low),
    medCveIds: of(medium),
    highCveIds: of(high),
    critCveIds: of(critical),
    negligibleCveIds: of(negligible),
    unknownCveIds: of(0),
  }
}
