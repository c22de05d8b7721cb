// Version 1 of groups: other names, lists in full, and a PUT that replaces. The rules are those of version 2.
import type { Handlers } from '#app.ts'
import { type Group as GroupMessage, Groups } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { invalid, withFieldNames } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { empty } from '#lib/wire.ts'
import * as access from '../access-requests/access-requests.service.ts'
import { aGroup, type Group, shownLimits, strangersView } from './groups.model.ts'
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

  async delete(call, { id }) {
    await service.deleteGroup(call, id)
    return empty
  },

  async lookupGroup(call) {
    const group = groupToV1(strangersView(await access.lookupGroup(call)))
    return { $typeName: 'pinfold.platform.iam.LookupGroupResponse', group }
  },

  async requestGroupAccess(call, { groupId }) {
    await withFieldNames({ group_uid: 'group_id' }, access.requestAccess(call, groupId))
    return { $typeName: 'pinfold.platform.iam.RequestGroupAccessResponse' }
  },

  async checkEligibility(call) {
    return { $typeName: 'pinfold.platform.iam.CheckEligibilityResponse', eligible: access.checkEligibility(call) }
  },
}

export const groupEventsV1: readonly EventBody[] = [
  eventBody(Groups.method.create, aGroup, groupToV1),
  eventBody(Groups.method.update, aGroup, groupToV1),
  deletionBody(Groups.method.delete),
]

function fromMessage(group: GroupMessage | undefined) {
  if (!group) throw invalid({ field: 'group', description: 'is required' })
  const { name, description, verified, kind } = group
  return { name, description, verified, kind }
}

/** A group as version 1 shows it, alone and where it is part of something else. */
export function groupToV1(group: Group): GroupMessage {
  return {
    $typeName: 'pinfold.platform.iam.Group',
    id: group.uid,
    name: group.name,
    description: group.description,
    resourceLimits: shownLimits(group),
    verified: group.verified,
    kind: group.kind as GroupMessage['kind'],
    status: group.status as GroupMessage['status'],
  }
}
