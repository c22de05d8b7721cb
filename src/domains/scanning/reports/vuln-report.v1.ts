// A report of vulnerabilities in the older of the two shapes of version 1.
import type { Handlers } from '#app.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import type { VulnerabilityMatch, VulnerabilityRecord } from '#gen/pinfold/tenant/v1/vuln_reports_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { getVulnReport, type ReportedVulnerability } from './vuln-report.service.ts'

export const vulnReportV1: Handlers<typeof Registry> = {
  async getVulnReport(call, { repoId, digest }) {
    const report = await getVulnReport(call, repoId, digest)
    return {
      $typeName: 'pinfold.platform.tenant.VulnReport',
      id: `${repoId}/${digest}`,
      ...(report.buildTime === '' ? {} : { vulnerabilityDbLastBuildTime: timestamp(report.buildTime) }),
      vulnerabilityMatches: report.vulnerabilities.flatMap(matchesOf),
      scanner: {
        $typeName: 'pinfold.platform.tenant.Scanner',
        name: report.scanner?.tool ?? 'pinfold',
        version: report.scanner?.version ?? call.app.version,
      },
      reportGeneration: timestamp(report.createTime),
      rawVulnReport: new Uint8Array(),
      lastSeen: timestamp(report.lastSeen),
    }
  },
}

/** One for each package that has it. */
function matchesOf(one: ReportedVulnerability): VulnerabilityMatch[] {
  const { id, aliases, summary, details, severity, cvss, fix, references, packages, records } = one
  return packages.map(({ purl, name, version }) => ({
    $typeName: 'pinfold.platform.tenant.VulnerabilityMatch',
    vulnerability: {
      $typeName: 'pinfold.platform.tenant.VulnerabilityRecord',
      id,
      description: [summary, details].filter((text) => text !== '').join(' '),
      // What is negligible is low here.
      severity: (severity === negligible ? low : severity) as VulnerabilityRecord['severity'],
      source: records[0]?.source ?? '',
      cvss: cvss.map(({ type, vector }) => ({
        $typeName: 'pinfold.platform.tenant.VulnerabilityRecord.Cvss',
        score: vector,
        version: /^CVSS:(\d\.\d)\//.exec(vector)?.[1] ?? `${type.at(-1)}.0`,
      })),
      cpeUri: [],
      relatedUrls: references,
      advisories: Object.fromEntries(records.flatMap(({ id: record, url }) => (url === '' ? [] : [[record, url]]))),
      relatedVulnerabilities: aliases.map((alias) => ({
        $typeName: 'pinfold.platform.tenant.VulnerabilityRecord.RelatedVulnerability',
        id: alias,
        source: '',
      })),
      displayId: id,
    },
    pkg: {
      $typeName: 'pinfold.platform.tenant.Package2',
      id: purl,
      name,
      version,
      license: '',
      description: '',
      purl,
    },
    fix: { $typeName: 'pinfold.platform.tenant.Fix', ...fix },
  }))
}

const [low, negligible] = [1, 5]
