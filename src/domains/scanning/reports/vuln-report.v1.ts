// Vulnerability reports in the older of the two formats of version 1.
import type { Handlers } from '#app.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { VulnReportSchema } from '#gen/pinfold/tenant/v1/vuln_reports_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import type { ReportedVulnerability } from '../image-findings/reports.model.ts'
import { getVulnReport } from './image-reports.service.ts'

const toMessage = messageOf(VulnReportSchema)

export const vulnReportV1: Handlers<typeof Registry> = {
  async getVulnReport(call, { repoId, digest }) {
    const report = await getVulnReport(call, repoId, digest)
    return toMessage({
      id: `${repoId}/${digest}`,
      vulnerabilityDbLastBuildTime: report.buildTime,
      vulnerabilityMatches: report.vulnerabilities.flatMap(matchesOf),
      scanner: { name: report.scanner?.tool ?? 'pinfold', version: report.scanner?.version ?? call.app.version },
      reportGeneration: report.createTime,
      rawVulnReport: new Uint8Array(),
      lastSeen: report.lastSeen,
    })
  },
}

/** One match for each package that has the vulnerability. */
function matchesOf(one: ReportedVulnerability) {
  const { id, aliases, summary, details, severity, cvss, fix, references, packages, records } = one
  const vulnerability = {
    id,
    description: [summary, details].filter((text) => text !== '').join(' '),
    // The lowest severity of this format is low.
    severity: severity === negligible ? low : severity,
    source: records[0]?.source ?? '',
    cvss: cvss.map(({ type, vector }) => {
      return { score: vector, version: /^CVSS:(\d\.\d)\//.exec(vector)?.[1] ?? `${type.at(-1)}.0` }
    }),
    cpeUri: [],
    relatedUrls: references,
    advisories: Object.fromEntries(records.flatMap(({ id: record, url }) => (url === '' ? [] : [[record, url]]))),
    relatedVulnerabilities: aliases.map((alias) => ({ id: alias, source: '' })),
    displayId: id,
  }
  return packages.map(({ purl, name, version }) => {
    return { vulnerability, pkg: { id: purl, name, version, license: '', description: '', purl }, fix }
  })
}

const [low, negligible] = [1, 5]
