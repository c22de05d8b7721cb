import type { Service } from '#app.ts'
import { SecurityAdvisoryService } from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { VulnerabilityControlService } from '#gen/pinfold/control/advisory/v1/vulnerabilities_pb.ts'
import { listDocuments } from './documents.v2.ts'
import { listResolvedVulnsReports } from './resolved-reports.v2.ts'
import { vulnerabilityControl } from './vulnerabilities.control.ts'
import { listVulnerabilityMetadata } from './vulnerabilities.v2.ts'

export const services: readonly Service[] = [
  { desc: SecurityAdvisoryService, handlers: { listDocuments, listVulnerabilityMetadata, listResolvedVulnsReports } },
  { desc: VulnerabilityControlService, handlers: vulnerabilityControl },
]
