// Version 1 of invitations. Requests are the messages themselves, and one method creates a group together with an invitation to
// it.
import type { Handlers } from '#app.ts'
import {
  type GroupInviteRequest,
  GroupInviteSchema,
  GroupInvites,
  type GroupInvite as InviteMessage,
  type StoredGroupInvite,
  StoredGroupInviteSchema,
} from '#gen/pinfold/iam/v1/group_invites_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { invalid, withFieldNames } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { everywhere, wholeList } from '#lib/lists/lists.ts'
import { isUid } from '#lib/uid.ts'
import { milliseconds } from '#lib/wire.ts'
import { roleToV1 } from '../roles/roles.v1.ts'
import { type GroupInvite, type HydratedInvite, toInviteResource } from './group-invites.model.ts'
import * as service from './group-invites.service.ts'

const toInvite = messageOf(GroupInviteSchema, { id: 'uid', expiration: 'expirationTime' })
const toStoredInvite = messageOf(StoredGroupInviteSchema, {
  id: 'uid',
  expiration: 'expirationTime',
  createdAt: 'createTime',
})

const inV1 = <T>(work: Promise<T>): Promise<T> => withFieldNames({ role_uid: 'role', name: 'group' }, work)

export const groupInvitesV1: Handlers<typeof GroupInvites> = {
  async create(call, request) {
    return toMessage(await inV1(service.createGroupInvite(call, request.group, fromMessage(request))))
  },

  async createWithGroup(call, request) {
    return toMessage(await inV1(service.createGroupWithInvite(call, request.group, fromMessage(request))))
  },

  async list(call, { group, id, keyId }) {
    if (group !== '' && !isUid(group)) throw invalid({ field: 'group', description: 'is not a uid' })
    const uidp = group === '' ? undefined : { ...everywhere, childrenOf: group }
    const invites = await wholeList(call, { uidp, id }, { keyId }, service.listGroupInvites)
    const newestFirst = invites.toReversed().sort((a, b) => (a.createTime < b.createTime ? 1 : -1))
    return { $typeName: 'pinfold.platform.iam.GroupInviteList', items: newestFirst.map(toStored) }
  },

  delete: deleting('id', service.deleteGroupInvite),
}

export const groupInviteEventsV1: readonly EventBody[] = [
  eventBody(GroupInvites.method.create, toInviteResource, toEventBody),
  deletionBody(GroupInvites.method.delete),
]

function fromMessage({ role, email, singleUse, ttl }: GroupInviteRequest): service.NewInvite {
  return { roleUid: role, email, singleUse, life: ttl && milliseconds(ttl) }
}

/** Message of an invitation. Only the response to its creation contains the code. */
function toMessage({ invite, code }: service.Offer): InviteMessage {
  return toInvite({ ...invite, role: invite.role && roleToV1(invite.role), code })
}

function toStored(invite: HydratedInvite): StoredGroupInvite {
  return toStoredInvite({ ...invite, role: invite.role && roleToV1(invite.role) })
}

/** Event body with uid and expiry of the invitation. The recipient is left out. */
function toEventBody({ uid, expirationTime }: GroupInvite): InviteMessage {
  return toInvite({ uid, expirationTime, keyId: '', code: '' })
}
