import type { Handlers } from '#app.ts'
import { type Group as GroupMessage, GroupSchema, GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { deleting, getting, listing, updating } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { type Group, groupFields, shownLimits, toGroupResource } from './groups.model.ts'
import * as service from './groups.service.ts'

const { method } = GroupsService
const rules = { fields: groupFields, defaultOrder: 'uid' }
const toMessage = messageOf(GroupSchema)

export const groups: Handlers<typeof GroupsService> = {
  getGroup: getting(service.getGroup, groupToV2),
  listGroups: listing(method.listGroups, rules, ({ name }) => ({ name }), service.listGroups, groupToV2),
  async createGroup(call, { parent, group }) {
    const input = fromMessage(group)
    return groupToV2(await service.createGroup(call, await service.resolveParent(call, parent), input))
  },

  updateGroup: updating('group', fromMessage, service.updateGroup, groupToV2),
  deleteGroup: deleting('uid', service.deleteGroup),
}

export const groupEvents: readonly EventBody[] = [
  eventBody(method.createGroup, toGroupResource, groupToV2),
  eventBody(method.updateGroup, toGroupResource, groupToV2),
  deletionBody(method.deleteGroup),
]

function fromMessage(group: GroupMessage | undefined) {
  return contentOf(group, 'group', 'name', 'description', 'verified', 'kind')
}

/** Converts a group to its message in version 2. Other messages contain this message too. */
export function groupToV2(group: Group): GroupMessage {
  return toMessage({ ...group, resourceLimits: shownLimits(group) })
}
