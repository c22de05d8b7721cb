import type { Domain } from '#domain.ts'
import { AuditService } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { DeliveriesService } from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import { RefusalsService } from '#gen/pinfold/control/events/v1/refusals_pb.ts'
import { EventStreamService } from '#gen/pinfold/control/events/v1/stream_pb.ts'
import { Subscriptions } from '#gen/pinfold/events/v1/subscriptions_pb.ts'
import { SubscriptionsService } from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import { audit } from './audit/audit.control.ts'
import { deliveries, deliveryEvents } from './delivery/deliveries.control.ts'
import { eventsHooks } from './events.hooks.ts'
import {
  deliverEvents,
  sweepAuditLog,
  sweepEvents,
  sweepRefusals,
  sweepSubscriptions,
  writeRefusals,
} from './events.job.ts'
import { openEvents } from './open-parts.ts'
import { refusals } from './refusals/refusals.control.ts'
import { resources } from './resources.ts'
import { eventStream } from './stream/stream.control.ts'
import { subscriptionEventsV1, subscriptionsV1 } from './subscriptions/subscriptions.v1.ts'
import { subscriptionEvents, subscriptions } from './subscriptions/subscriptions.v2.ts'

export const events: Domain = {
  parts: openEvents,
  services: [
    { desc: SubscriptionsService, handlers: subscriptions },
    { desc: Subscriptions, handlers: subscriptionsV1 },
    { desc: AuditService, handlers: audit },
    { desc: DeliveriesService, handlers: deliveries },
    { desc: RefusalsService, handlers: refusals },
    { desc: EventStreamService, handlers: eventStream },
  ],
  eventBodies: [...subscriptionEvents, ...subscriptionEventsV1, ...deliveryEvents],
  resources,
  hooks: eventsHooks,
  jobs: [deliverEvents, writeRefusals, sweepSubscriptions, sweepEvents, sweepRefusals, sweepAuditLog],
}
