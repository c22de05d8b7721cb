import { ResolvedVulnsReportSchema, SecurityAdvisoryService } from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type Instant, toIso } from '#lib/timestamp.ts'
import { reportFields, shownReport } from './resolved-reports.model.ts'
import { listResolvedReports } from './resolved-reports.service.ts'

const toMessage = messageOf(ResolvedVulnsReportSchema)
const isoOf = (time: Instant | undefined): string => (time ? toIso(time) : '')

export const listResolvedVulnsReports = listing(
  SecurityAdvisoryService.method.listResolvedVulnsReports,
  { fields: reportFields, defaultOrder: 'date' },
  ({ imageRefs, startTime, endTime }) => {
    const images = imageRefs.map(({ repo, tags }) => ({ repo, tags }))
    return { images, start: isoOf(startTime), end: isoOf(endTime) }
  },
  listResolvedReports,
  (report) => toMessage(shownReport(report)),
)
