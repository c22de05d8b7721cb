import {
  VulnerabilityFoundEventSchema,
  VulnerabilityResolvedEventSchema,
} from '#gen/pinfold/control/scanning/v1/vulnerability_events_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { toFoundVulnerabilityResource, toResolvedVulnerabilityResource } from './changes.model.ts'

export const vulnerabilityEvents: readonly EventBody[] = [
  eventBody(VulnerabilityFoundEventSchema, toFoundVulnerabilityResource, messageOf(VulnerabilityFoundEventSchema)),
  eventBody(
    VulnerabilityResolvedEventSchema,
    toResolvedVulnerabilityResource,
    messageOf(VulnerabilityResolvedEventSchema),
  ),
]
