// Public documents, vulnerability metadata and reports of resolved vulnerabilities, in version 1 of the API. One answer contains
// all documents or reports. Images that do not exist are ignored.
import { create } from '@bufbuild/protobuf'
import type { Handlers } from '#app.ts'
import {
  DocumentSchema,
  ResolvedVulnsReportSchema,
  SecurityAdvisory,
  VulnerabilityMetadataSchema,
} from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { withFieldNames } from '#lib/errors.ts'
import { toIso } from '#lib/timestamp.ts'
import { listAllDocuments, shownDocument } from './documents/documents.service.ts'
import { vulnerabilityFields } from './metadata/vulnerabilities.model.ts'
import { listVulnerabilities } from './metadata/vulnerabilities.service.ts'
import { shownReport } from './reports/resolved-reports.model.ts'
import { listAllResolvedReports } from './reports/resolved-reports.service.ts'

const { method } = SecurityAdvisory
const toReport = messageOf(ResolvedVulnsReportSchema)
const names = { start_time: 'from', end_time: 'to' }

export const securityAdvisoryV1: Handlers<typeof SecurityAdvisory> = {
  async listDocuments(call, { id, cves }) {
    const found = await listAllDocuments(call, { origin: id, aliases: [...new Set(cves)] })
    const items = found.map((publication) => create(DocumentSchema, shownDocument(publication)))
    return { $typeName: 'pinfold.platform.advisory.DocumentList', items }
  },

  listVulnerabilityMetadata: listing(
    method.listVulnerabilityMetadata,
    { fields: vulnerabilityFields, defaultOrder: 'id' },
    ({ id, ids }) => ({ ids: id === '' ? ids : [id, ...ids] }),
    listVulnerabilities,
    messageOf(VulnerabilityMetadataSchema, { severity: 'severities' }),
  ),

  async listResolvedVulnsReports(call, { imageRefs, from, to }) {
    const images = imageRefs.map(({ repo, tags }) => ({ repo, tags }))
    const request = { images, start: from ? toIso(from) : '', end: to ? toIso(to) : '', lenient: true }
    const reports = await withFieldNames(names, listAllResolvedReports(call, request))
    const items = reports.map((one) => toReport(shownReport(one)))
    return { $typeName: 'pinfold.platform.advisory.ResolvedVulnsReportList', items }
  },
}
