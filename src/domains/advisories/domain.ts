import type { Domain } from '#domain.ts'
import { SecurityAdvisory } from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { SecurityAdvisoryService } from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { VulnerabilityControlService } from '#gen/pinfold/control/advisory/v1/vulnerabilities_pb.ts'
import { AdvisoryControlService } from '#gen/pinfold/control/vulnerabilities/v1/advisories_pb.ts'
import { Advisories } from '#gen/pinfold/vulnerabilities/v1/advisories_pb.ts'
import { AdvisoriesService } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { advisoryControl } from './advisories/advisories.control.ts'
import { advisoriesV1 } from './advisories/advisories.v1.ts'
import { advisories as advisoriesV2 } from './advisories/advisories.v2.ts'
import { vulnerabilityControl } from './metadata/vulnerabilities.control.ts'
import { openAdvisories } from './open-parts.ts'
import { resources } from './resources.ts'
import { securityAdvisoryV1 } from './security-advisory.v1.ts'
import { securityAdvisory } from './security-advisory.v2.ts'

export const advisories: Domain = {
  parts: openAdvisories,
  services: [
    { desc: AdvisoriesService, handlers: advisoriesV2 },
    { desc: AdvisoryControlService, handlers: advisoryControl },
    { desc: SecurityAdvisoryService, handlers: securityAdvisory },
    { desc: VulnerabilityControlService, handlers: vulnerabilityControl },
    { desc: Advisories, handlers: advisoriesV1 },
    { desc: SecurityAdvisory, handlers: securityAdvisoryV1 },
  ],
  eventBodies: [],
  resources,
  jobs: [],
}
