// Bodies of events about people and groups that identity providers provision over SCIM.
import {
  ScimGroupCreatedEventSchema,
  ScimGroupDeletedEventSchema,
  type ScimGroup as ScimGroupMessage,
  ScimGroupSchema,
  ScimGroupUpdatedEventSchema,
  ScimUserCreatedEventSchema,
  ScimUserDeletedEventSchema,
  ScimUserSchema,
  ScimUserUpdatedEventSchema,
} from '#gen/pinfold/control/iam/v1/scim_events_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { type ChangedGroup, groupKeyOf, toScimGroupResource } from './scim-groups.model.ts'
import { toScimUserResource } from './scim-users.model.ts'

const toUser = messageOf(ScimUserSchema, { identityProviderUid: 'provider' })
const toGroup = messageOf(ScimGroupSchema, { identityProviderUid: 'provider' })

export const scimEvents: readonly EventBody[] = [
  ...[ScimUserCreatedEventSchema, ScimUserUpdatedEventSchema, ScimUserDeletedEventSchema].map((of) => {
    const toMessage = messageOf(of)
    return eventBody(of, toScimUserResource, (user) => toMessage({ user: toUser(user) }))
  }),
  ...[ScimGroupCreatedEventSchema, ScimGroupUpdatedEventSchema, ScimGroupDeletedEventSchema].map((of) => {
    const toMessage = messageOf(of)
    return eventBody(of, toScimGroupResource, (changed) => toMessage({ group: groupMessage(changed) }))
  }),
]

/** Most member IDs that the body of an event lists. */
const maxListed = 100

function groupMessage({ group, members, added, removed }: ChangedGroup): ScimGroupMessage {
  return toGroup({
    ...group,
    externalGroupId: groupKeyOf(group),
    memberCount: members,
    addedCount: added.length,
    addedUserIds: added.slice(0, maxListed),
    removedCount: removed.length,
    removedUserIds: removed.slice(0, maxListed),
  })
}
