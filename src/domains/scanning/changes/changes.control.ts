import {
  VulnerabilityFoundEventSchema,
  VulnerabilityResolvedEventSchema,
} from '#gen/pinfold/control/scanning/v1/vulnerability_events_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { aFoundVulnerability, aResolvedVulnerability, type ToldChange } from './changes.model.ts'

export const vulnerabilityEvents: readonly EventBody[] = [
  eventBody(VulnerabilityFoundEventSchema, aFoundVulnerability, ({ tags, ...told }) => ({
    $typeName: 'pinfold.control.scanning.v1.VulnerabilityFoundEvent' as const,
    ...told,
    tags: tagged(tags),
  })),
  eventBody(VulnerabilityResolvedEventSchema, aResolvedVulnerability, ({ tags, purls: _, severity: __, ...told }) => ({
    $typeName: 'pinfold.control.scanning.v1.VulnerabilityResolvedEvent' as const,
    ...told,
    tags: tagged(tags),
  })),
]

const tagged = (tags: ToldChange['tags']) =>
  tags.map((one) => ({ $typeName: 'pinfold.control.scanning.v1.TaggedDigest' as const, ...one }))
