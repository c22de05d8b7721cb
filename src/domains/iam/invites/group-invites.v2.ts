import type { Handlers } from '#app.ts'
import {
  type GroupInviteRole,
  GroupInvitesService,
  type GroupInvite as InviteMessage,
} from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty, milliseconds } from '#lib/wire.ts'
import { anInvite, type GroupInvite, groupInviteFields, type HydratedInvite } from './group-invites.model.ts'
import * as service from './group-invites.service.ts'

const rules = { fields: groupInviteFields, defaultOrder: 'created_at desc' }

export const groupInvites: Handlers<typeof GroupInvitesService> = {
  async getGroupInvite(call, { uid }) {
    return toMessage(await service.getGroupInvite(call, uid))
  },

  async listGroupInvites(call, request) {
    const { keyId } = request
    const listed = await service.listGroupInvites(call, readList(call, request, rules, { keyId }))
    return listResponse('pinfold.platform.iam.v2.ListGroupInvitesResponse', 'groupInvites', listed, toMessage, request)
  },

  async createGroupInvite(call, { parent, groupInvite }) {
    if (!groupInvite) throw invalid({ field: 'group_invite', description: 'is required' })
    const { roleUid, email, singleUse, ttl } = groupInvite
    const life = ttl && milliseconds(ttl)
    const { invite, code } = await service.createGroupInvite(call, parent, { roleUid, email, singleUse, life })
    return toMessage(invite, code)
  },

  async deleteGroupInvite(call, { uid }) {
    await service.deleteGroupInvite(call, uid)
    return empty
  },
}

export const groupInviteEvents: readonly EventBody[] = [
  eventBody(GroupInvitesService.method.createGroupInvite, anInvite, toEventBody),
  deletionBody(GroupInvitesService.method.deleteGroupInvite),
]

/** Only the answer of a create has the code. */
function toMessage(invite: HydratedInvite, code = ''): InviteMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.GroupInvite',
    uid: invite.uid,
    roleUid: invite.roleUid,
    role: invite.role && {
      $typeName: 'pinfold.platform.iam.v2.GroupInviteRole',
      ...invite.role,
      capabilities: invite.role.capabilities as GroupInviteRole['capabilities'],
    },
    email: invite.email,
    expirationTime: timestamp(invite.expirationTime),
    singleUse: invite.singleUse,
    code,
    keyId: invite.keyId,
    createTime: timestamp(invite.createTime),
    updateTime: timestamp(invite.createTime),
  }
}

/** Subscribers learn that there is an invite and how long it lasts, not whom it is for. */
function toEventBody({ uid, expirationTime }: GroupInvite): InviteMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.GroupInvite',
    uid,
    roleUid: '',
    email: '',
    expirationTime: timestamp(expirationTime),
    singleUse: false,
    code: '',
    keyId: '',
  }
}
