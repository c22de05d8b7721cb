import type { Call } from '#app.ts'
import type {
  ListResolvedVulnsReportsRequest,
  ListResolvedVulnsReportsResponse,
  ResolvedVulnsReport,
  Severity,
} from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { readPage } from '#lib/paging.ts'
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
  const page = readPage(call, request, rules, [images, start, end])
  const listed = await listResolvedReports(call, page, { images, start, end })
  return {
    $typeName: 'pinfold.platform.advisory.v2.ListResolvedVulnsReportsResponse',
    resolvedVulnsReports: listed.items.map(toMessage),
    nextPageToken: listed.next,
    totalCount: BigInt(listed.total),
    skipped: request.skip,
  }
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
