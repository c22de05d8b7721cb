import type { Call, Handlers } from '#app.ts'
import {
  PushTokenCreatedSchema,
  PushTokenRevokedSchema,
  PushTokenSchema,
  PushTokensService,
} from '#gen/pinfold/control/iam/v1/push_tokens_pb.ts'
import { deleting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { empty, milliseconds } from '#lib/wire.ts'
import { pushTokenFields, toPushTokenResource, toRevokedPushTokenResource } from './push-tokens.model.ts'
import * as service from './push-tokens.service.ts'

const { method } = PushTokensService
const rules = { fields: { uid: pushTokenFields.uid }, defaultOrder: 'uid' }
const toMessage = messageOf(PushTokenSchema, { repoUids: 'repos' })
const toCreated = messageOf(PushTokenCreatedSchema)
const toRevoked = messageOf(PushTokenRevokedSchema)

export const pushTokens: Handlers<typeof PushTokensService> = {
  async createPushToken(call, { group, name, push, repoUids, ttl }) {
    const seconds = ttl && milliseconds(ttl) / 1000
    const { token, secret } = await service.createPushToken(call, { group, name, push, repos: repoUids, seconds })
    return { $typeName: 'pinfold.control.iam.v1.CreatePushTokenResponse', pushToken: toMessage(token), secret }
  },

  listPushTokens: listing(method.listPushTokens, rules, () => ({}), service.listPushTokens, toMessage),
  revokePushToken: deleting('uid', service.revokePushToken),

  listGroupPushTokens: listing(
    method.listGroupPushTokens,
    rules,
    ({ group }) => ({ group }),
    (call: Call, query) => service.listGroupPushTokens(call, query.filter.group, query),
    toMessage,
  ),

  async revokeGroupPushToken(call, { group, pushTokenUid }) {
    await service.revokeGroupPushToken(call, group, pushTokenUid)
    return empty
  },
}

export const pushTokenEvents: readonly EventBody[] = [
  eventBody(PushTokenCreatedSchema, toPushTokenResource, (token) => toCreated({ pushToken: toMessage(token) })),
  eventBody(PushTokenRevokedSchema, toRevokedPushTokenResource, ({ token, reason }) => {
    return toRevoked({ pushToken: toMessage(token), reason })
  }),
]
