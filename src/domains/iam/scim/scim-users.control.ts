// What events tell of people who are provisioned over SCIM.
import {
  ScimUserCreatedEventSchema,
  ScimUserDeletedEventSchema,
  type ScimUser as ScimUserMessage,
  ScimUserUpdatedEventSchema,
} from '#gen/pinfold/control/iam/v1/scim_events_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { aScimUser, type ScimUser } from './scim-users.model.ts'

export const scimUserEvents: readonly EventBody[] = [
  eventBody(ScimUserCreatedEventSchema, aScimUser, (user) => ({
    $typeName: 'pinfold.control.iam.v1.ScimUserCreatedEvent' as const,
    user: toMessage(user),
  })),
  eventBody(ScimUserUpdatedEventSchema, aScimUser, (user) => ({
    $typeName: 'pinfold.control.iam.v1.ScimUserUpdatedEvent' as const,
    user: toMessage(user),
  })),
  eventBody(ScimUserDeletedEventSchema, aScimUser, (user) => ({
    $typeName: 'pinfold.control.iam.v1.ScimUserDeletedEvent' as const,
    user: toMessage(user),
  })),
]

function toMessage({ id, provider, userName, externalId, active }: ScimUser): ScimUserMessage {
  return {
    $typeName: 'pinfold.control.iam.v1.ScimUser',
    id,
    identityProviderUid: provider,
    userName,
    externalId,
    active,
  }
}
