import { SecurityAdvisoryService, VulnerabilityMetadataSchema } from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { vulnerabilityFields } from './vulnerabilities.model.ts'
import * as service from './vulnerabilities.service.ts'

export const listVulnerabilityMetadata = listing(
  SecurityAdvisoryService.method.listVulnerabilityMetadata,
  { fields: vulnerabilityFields, defaultOrder: 'id' },
  ({ id, ids }) => ({ ids: id === '' ? ids : [id, ...ids] }),
  service.listVulnerabilities,
  messageOf(VulnerabilityMetadataSchema),
)
