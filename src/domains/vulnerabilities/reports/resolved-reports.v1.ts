// Version 1 of the reports: all days in one answer, and what does not exist resolves nothing.
import type { Call } from '#app.ts'
import {
  type ResolvedVulnsReportFilter,
  type ResolvedVulnsReportList,
  ResolvedVulnsReportSchema,
} from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { withFieldNames } from '#lib/errors.ts'
import { toIso } from '#lib/timestamp.ts'
import { shownReport } from './resolved-reports.model.ts'
import { listAllResolvedReports } from './resolved-reports.service.ts'

const toMessage = messageOf(ResolvedVulnsReportSchema)
const names = { start_time: 'from', end_time: 'to' }

export async function listResolvedVulnsReports(
  call: Call,
  { imageRefs, from, to }: ResolvedVulnsReportFilter,
): Promise<ResolvedVulnsReportList> {
  const images = imageRefs.map(({ repo, tags }) => ({ repo, tags }))
  const request = { images, start: from ? toIso(from) : '', end: to ? toIso(to) : '', lenient: true }
  const reports = await withFieldNames(names, listAllResolvedReports(call, request))
  return {
    $typeName: 'pinfold.platform.advisory.ResolvedVulnsReportList',
    items: reports.map((one) => toMessage(shownReport(one))),
  }
}
