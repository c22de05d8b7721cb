import type { Handlers } from '#app.ts'
import {
  PushTokenCreatedSchema,
  type PushToken as PushTokenMessage,
  PushTokenRevokedSchema,
  type PushTokensService,
} from '#gen/pinfold/control/iam/v1/push_tokens_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty, milliseconds } from '#lib/wire.ts'
import {
  aPushToken,
  aRevokedPushToken,
  type PushToken,
  pushTokenFields,
  type RevokedPushToken,
} from './push-tokens.model.ts'
import * as service from './push-tokens.service.ts'

const rules = { fields: { uid: pushTokenFields.uid }, defaultOrder: 'uid' }
const response = 'pinfold.control.iam.v1.ListPushTokensResponse'

export const pushTokens: Handlers<typeof PushTokensService> = {
  async createPushToken(call, { group, name, push, repoUids, ttl }) {
    const seconds = ttl && milliseconds(ttl) / 1000
    const { token, secret } = await service.createPushToken(call, { group, name, push, repos: repoUids, seconds })
    return { $typeName: 'pinfold.control.iam.v1.CreatePushTokenResponse', pushToken: toMessage(token), secret }
  },

  async listPushTokens(call, request) {
    const listed = await service.listPushTokens(call, readList(call, request, rules, {}))
    return listResponse(response, 'pushTokens', listed, toMessage, request)
  },

  async revokePushToken(call, { uid }) {
    await service.revokePushToken(call, uid)
    return empty
  },

  async listGroupPushTokens(call, request) {
    const { group } = request
    const listed = await service.listGroupPushTokens(call, group, readList(call, request, rules, { group }))
    return listResponse(response, 'pushTokens', listed, toMessage, request)
  },

  async revokeGroupPushToken(call, { group, pushTokenUid }) {
    await service.revokeGroupPushToken(call, group, pushTokenUid)
    return empty
  },
}

export const pushTokenEvents: readonly EventBody[] = [
  eventBody(PushTokenCreatedSchema, aPushToken, (token: PushToken) => ({
    $typeName: 'pinfold.control.iam.v1.PushTokenCreated' as const,
    pushToken: toMessage(token),
  })),
  eventBody(PushTokenRevokedSchema, aRevokedPushToken, ({ token, reason }: RevokedPushToken) => ({
    $typeName: 'pinfold.control.iam.v1.PushTokenRevoked' as const,
    pushToken: toMessage(token),
    reason,
  })),
]

function toMessage(token: PushToken): PushTokenMessage {
  const { uid, identityUid, userName, name, group, repos, push, createTime, expireTime } = token
  return {
    $typeName: 'pinfold.control.iam.v1.PushToken',
    uid,
    identityUid,
    userName,
    name,
    group,
    repoUids: [...repos],
    push,
    lastUsedFrom: token.lastUsedFrom,
    createTime: timestamp(createTime),
    expireTime: timestamp(expireTime),
    ...(token.lastUsedTime !== '' && { lastUsedTime: timestamp(token.lastUsedTime) }),
  }
}
