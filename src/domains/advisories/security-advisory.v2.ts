// Public documents and vulnerability metadata, which need no authentication, and reports of resolved vulnerabilities.
import { create } from '@bufbuild/protobuf'
import type { Handlers } from '#app.ts'
import {
  DocumentSchema,
  ResolvedVulnsReportSchema,
  SecurityAdvisoryService,
  VulnerabilityMetadataSchema,
} from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type Instant, toIso } from '#lib/timestamp.ts'
import { listDocuments, shownDocument } from './documents/documents.service.ts'
import { vulnerabilityFields } from './metadata/vulnerabilities.model.ts'
import { listVulnerabilities } from './metadata/vulnerabilities.service.ts'
import { reportFields, shownReport } from './reports/resolved-reports.model.ts'
import { listResolvedReports } from './reports/resolved-reports.service.ts'

const { method } = SecurityAdvisoryService
const toReport = messageOf(ResolvedVulnsReportSchema)
const isoOf = (time: Instant | undefined): string => (time ? toIso(time) : '')

export const securityAdvisory: Handlers<typeof SecurityAdvisoryService> = {
  listDocuments: listing(
    method.listDocuments,
    { fields: { id: { column: 'id', sort: true } }, defaultOrder: 'id' },
    ({ id, cves }) => ({ origin: id, aliases: [...new Set(cves)] }),
    listDocuments,
    (publication) => create(DocumentSchema, shownDocument(publication)),
  ),

  listVulnerabilityMetadata: listing(
    method.listVulnerabilityMetadata,
    { fields: vulnerabilityFields, defaultOrder: 'id' },
    ({ id, ids }) => ({ ids: id === '' ? ids : [id, ...ids] }),
    listVulnerabilities,
    messageOf(VulnerabilityMetadataSchema),
  ),

  listResolvedVulnsReports: listing(
    method.listResolvedVulnsReports,
    { fields: reportFields, defaultOrder: 'date' },
    ({ imageRefs, startTime, endTime }) => {
      const images = imageRefs.map(({ repo, tags }) => ({ repo, tags }))
      return { images, start: isoOf(startTime), end: isoOf(endTime) }
    },
    listResolvedReports,
    (report) => toReport(shownReport(report)),
  ),
}
