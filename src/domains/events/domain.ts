import type { Service } from '#app.ts'
import { SubscriptionsService } from '#gen/pinfold/events/v2/subscriptions_pb.ts'

export const services: readonly Service[] = [{ desc: SubscriptionsService, handlers: {} }]
