import type { Call } from '#app.ts'
import type {
  ListResolvedVulnsReportsRequest,
  ListResolvedVulnsReportsResponse,
  ResolvedVulnsReport,
  Severity,
} from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { type Instant, timestamp, toIso } from '#lib/timestamp.ts'
import { type ResolvedReport, reportFields } from './resolved-reports.model.ts'
import { listResolvedReports } from './resolved-reports.service.ts'

const rules = { fields: reportFields, defaultOrder: 'date' } as const

export async function listResolvedVulnsReports(
  call: Call,
  request: ListResolvedVulnsReportsRequest,
): Promise<ListResolvedVulnsReportsResponse> {
  const images = request.imageRefs.map(({ repo, tags }) => ({ repo, tags }))
  const [start, end] = [isoOf(request.startTime), isoOf(request.endTime)]
  const listed = await listResolvedReports(call, readList(call, request, rules, { images, start, end }))
  return listResponse(
    'pinfold.platform.advisory.v2.ListResolvedVulnsReportsResponse',
    'resolvedVulnsReports',
    listed,
    toMessage,
    request,
  )
}

const isoOf = (time: Instant | undefined): string => (time ? toIso(time) : '')

function toMessage({ date, resolved }: ResolvedReport): ResolvedVulnsReport {
  return {
    $typeName: 'pinfold.platform.advisory.v2.ResolvedVulnsReport',
    date: timestamp(date),
    resolvedVulns: resolved.map(({ id, aliases, severities }) => ({
      $typeName: 'pinfold.platform.advisory.v2.ResolvedVuln',
      id,
      aliases,
      cvssSeverities: severities.map(({ type, score }) => ({
        $typeName: 'pinfold.platform.advisory.v2.Severity',
        type: type as Severity['type'],
        score,
      })),
    })),
  }
}
