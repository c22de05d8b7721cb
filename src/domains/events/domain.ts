import type { Service } from '#app.ts'
import { AuditService } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { SubscriptionsService } from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import { audit } from './audit.v2.ts'

export const services: readonly Service[] = [
  { desc: SubscriptionsService, handlers: {} },
  { desc: AuditService, handlers: audit },
]
