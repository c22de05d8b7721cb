import type { Service } from '#app.ts'
import { AdvisoriesService } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'

export const services: readonly Service[] = [{ desc: AdvisoriesService, handlers: {} }]
