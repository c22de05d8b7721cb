// Version 1 of the reports: all days in one answer, and what does not exist resolves nothing.
import type { Call } from '#app.ts'
import type {
  ResolvedVulnsReport,
  ResolvedVulnsReportFilter,
  ResolvedVulnsReportList,
  Severity,
} from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { withFieldNames } from '#lib/errors.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import type { ResolvedReport } from './resolved-reports.model.ts'
import { listAllResolvedReports } from './resolved-reports.service.ts'

const names = { start_time: 'from', end_time: 'to' }

export async function listResolvedVulnsReports(
  call: Call,
  { imageRefs, from, to }: ResolvedVulnsReportFilter,
): Promise<ResolvedVulnsReportList> {
  const images = imageRefs.map(({ repo, tags }) => ({ repo, tags }))
  const request = { images, start: from ? toIso(from) : '', end: to ? toIso(to) : '', lenient: true }
  const reports = await withFieldNames(names, listAllResolvedReports(call, request))
  return { $typeName: 'pinfold.platform.advisory.ResolvedVulnsReportList', items: reports.map(toMessage) }
}

function toMessage({ date, resolved }: ResolvedReport): ResolvedVulnsReport {
  return {
    $typeName: 'pinfold.platform.advisory.ResolvedVulnsReport',
    date: timestamp(date),
    resolvedVulns: resolved.map(({ id, aliases, severities }) => ({
      $typeName: 'pinfold.platform.advisory.ResolvedVuln',
      id,
      aliases,
      cvssSeverities: severities.map(({ type, score }) => ({
        $typeName: 'pinfold.platform.advisory.Severity',
        type: type as Severity['type'],
        score,
      })),
    })),
  }
}
