import type { Handlers } from '#app.ts'
import {
  GroupInviteSchema,
  GroupInvitesService,
  type GroupInvite as InviteMessage,
} from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import { deleting, getting, listing } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { milliseconds } from '#lib/wire.ts'
import { type GroupInvite, groupInviteFields, type HydratedInvite, toInviteResource } from './group-invites.model.ts'
import * as service from './group-invites.service.ts'

const { method } = GroupInvitesService
const rules = { fields: groupInviteFields, defaultOrder: 'created_at desc' }
const toInvite = messageOf(GroupInviteSchema)

export const groupInvites: Handlers<typeof GroupInvitesService> = {
  getGroupInvite: getting(service.getGroupInvite, toMessage),
  listGroupInvites: listing(
    method.listGroupInvites,
    rules,
    ({ keyId }) => ({ keyId }),
    service.listGroupInvites,
    toMessage,
  ),
  async createGroupInvite(call, { parent, groupInvite }) {
    const offer = await service.createGroupInvite(call, parent, fromMessage(groupInvite))
    return toOffer(offer, `${call.url}${linkPath}#${offer.linkKey}`)
  },
  deleteGroupInvite: deleting('uid', service.deleteGroupInvite),
}

export const groupInviteEvents: readonly EventBody[] = [
  eventBody(method.createGroupInvite, toInviteResource, toEventBody),
  deletionBody(method.deleteGroupInvite),
]

function fromMessage(message: InviteMessage | undefined): service.NewInvite {
  const { roleUid, email, singleUse, ttl } = required(message, 'group_invite')
  return { roleUid, email, singleUse, life: ttl && milliseconds(ttl) }
}

function toMessage(invite: HydratedInvite): InviteMessage {
  return toOffer({ invite, code: '' }, '')
}

/** Path of the page that accepts an invitation. The key is in the fragment of the URL, which browsers do not send to servers. */
const linkPath = '/ui/invite'

/** Message of an invitation. Only the response to its creation contains the code and the link. */
function toOffer({ invite, code }: Pick<service.Offer, 'invite' | 'code'>, link: string): InviteMessage {
  return toInvite({ ...invite, ttl: undefined, code, link, updateTime: invite.createTime })
}

/** Event body with uid and expiry of the invitation. The recipient is left out. */
function toEventBody({ uid, expirationTime }: GroupInvite): InviteMessage {
  return toInvite({ uid, expirationTime, roleUid: '', email: '', singleUse: false, code: '', link: '', keyId: '' })
}
