import type { Service } from '#app.ts'
import { SecurityAdvisoryService } from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'

export const services: readonly Service[] = [{ desc: SecurityAdvisoryService, handlers: {} }]
