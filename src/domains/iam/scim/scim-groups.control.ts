// Bodies of the events about groups that identity providers push over SCIM.
import {
  ScimGroupCreatedEventSchema,
  ScimGroupDeletedEventSchema,
  type ScimGroup as ScimGroupMessage,
  ScimGroupUpdatedEventSchema,
} from '#gen/pinfold/control/iam/v1/scim_events_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { aScimGroup, type ChangedGroup, groupKeyOf } from './scim-groups.model.ts'

export const scimGroupEvents: readonly EventBody[] = [
  eventBody(ScimGroupCreatedEventSchema, aScimGroup, (changed) => ({
    $typeName: 'pinfold.control.iam.v1.ScimGroupCreatedEvent' as const,
    group: toMessage(changed),
  })),
  eventBody(ScimGroupUpdatedEventSchema, aScimGroup, (changed) => ({
    $typeName: 'pinfold.control.iam.v1.ScimGroupUpdatedEvent' as const,
    group: toMessage(changed),
  })),
  eventBody(ScimGroupDeletedEventSchema, aScimGroup, (changed) => ({
    $typeName: 'pinfold.control.iam.v1.ScimGroupDeletedEvent' as const,
    group: toMessage(changed),
  })),
]

/** Number of member ids that an event names. */
const maxTold = 100

function toMessage({ group, members, added, removed }: ChangedGroup): ScimGroupMessage {
  return {
    $typeName: 'pinfold.control.iam.v1.ScimGroup',
    id: group.id,
    identityProviderUid: group.provider,
    displayName: group.displayName,
    externalId: group.externalId,
    externalGroupId: groupKeyOf(group),
    memberCount: members,
    addedCount: added.length,
    addedUserIds: added.slice(0, maxTold),
    removedCount: removed.length,
    removedUserIds: removed.slice(0, maxTold),
  }
}
