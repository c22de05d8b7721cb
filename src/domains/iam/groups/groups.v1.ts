// Version 1 of groups. It has other names, complete lists, and a PUT that replaces groups. The rules are those of version 2.
import type { Handlers } from '#app.ts'
import { type Group as GroupMessage, GroupSchema, Groups } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { type Group, shownLimits, toGroupResource } from './groups.model.ts'
import * as service from './groups.service.ts'

export const groupsV1: Handlers<typeof Groups> = {
  async create(call, { parent, group }) {
    const input = fromMessage(group)
    return groupToV1(await service.createGroup(call, await service.resolveParentByStart(call, parent), input))
  },

  async update(call, group) {
    return groupToV1(await service.replaceGroup(call, group.id, fromMessage(group)))
  },

  async list(call, { id, uidp, name }) {
    const groups = await wholeList(call, { uidp, id }, { name }, service.listGroups)
    return { $typeName: 'pinfold.platform.iam.GroupList', items: groups.map(groupToV1) }
  },

  delete: deleting('id', service.deleteGroup),
}

export const groupEventsV1: readonly EventBody[] = [
  eventBody(Groups.method.create, toGroupResource, groupToV1),
  eventBody(Groups.method.update, toGroupResource, groupToV1),
  deletionBody(Groups.method.delete),
]

function fromMessage(group: GroupMessage | undefined) {
  return contentOf(group, 'group', 'name', 'description', 'verified', 'kind')
}

const toMessage = messageOf(GroupSchema, { id: 'uid' })

/** Converts a group to its message in version 1. Other messages contain this message too. */
export function groupToV1(group: Group): GroupMessage {
  return toMessage({ ...group, resourceLimits: shownLimits(group) })
}
