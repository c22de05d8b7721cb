import type { Service } from '#app.ts'
import { AdvisoryControlService } from '#gen/pinfold/control/vulnerabilities/v1/advisories_pb.ts'
import { AdvisoriesService } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { advisoryControl } from './advisories.control.ts'
import { advisories } from './advisories.v2.ts'

export const services: readonly Service[] = [
  { desc: AdvisoriesService, handlers: advisories },
  { desc: AdvisoryControlService, handlers: advisoryControl },
]
