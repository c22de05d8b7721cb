import type { Handlers } from '#app.ts'
import { type Group as GroupMessage, GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { aGroup, type Group, groupFields, shownLimits } from './groups.model.ts'
import * as service from './groups.service.ts'

const rules = { fields: groupFields, defaultOrder: 'uid' }

export const groups: Handlers<typeof GroupsService> = {
  async getGroup(call, { uid }) {
    return groupToV2(await service.getGroup(call, uid))
  },

  async listGroups(call, request) {
    const { name } = request
    const listed = await service.listGroups(call, readList(call, request, rules, { name }))
    return listResponse('pinfold.platform.iam.v2.ListGroupsResponse', 'groups', listed, groupToV2, request)
  },

  async createGroup(call, { parent, group }) {
    const input = fromMessage(group)
    return groupToV2(await service.createGroup(call, await service.resolveParent(call, parent), input))
  },

  async updateGroup(call, { group, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(group) }
    return groupToV2(await service.updateGroup(call, group?.uid ?? '', patch))
  },

  async deleteGroup(call, { uid }) {
    await service.deleteGroup(call, uid)
    return empty
  },
}

export const groupEvents: readonly EventBody[] = [
  eventBody(GroupsService.method.createGroup, aGroup, groupToV2),
  eventBody(GroupsService.method.updateGroup, aGroup, groupToV2),
  deletionBody(GroupsService.method.deleteGroup),
]

function fromMessage(group: GroupMessage | undefined) {
  if (!group) throw invalid({ field: 'group', description: 'is required' })
  const { name, description, verified, kind } = group
  return { name, description, verified, kind }
}

/** A group as version 2 shows it, alone and where it is part of something else. */
export function groupToV2(group: Group): GroupMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.Group',
    uid: group.uid,
    name: group.name,
    description: group.description,
    resourceLimits: shownLimits(group),
    verified: group.verified,
    createTime: timestamp(group.createTime),
    updateTime: timestamp(group.updateTime),
    kind: group.kind as GroupMessage['kind'],
    status: group.status as GroupMessage['status'],
  }
}
