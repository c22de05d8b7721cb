// Version 1 of the methods of identity providers that are about their SCIM endpoint.
import type { Handlers } from '#app.ts'
import { IdentityProviders } from '#gen/pinfold/iam/v1/identity_providers_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { milliseconds } from '#lib/wire.ts'
import {
  aScimState,
  aScimToken,
  describeIssued,
  describeReplaced,
  type IssuedToken,
  type ScimState,
} from './scim-settings.model.ts'
import * as service from './scim-settings.service.ts'

type Methods = 'generateScimToken' | 'regenerateScimToken' | 'revokeScimToken' | 'setScimEnabled'
type Issued = IssuedToken & { token?: string }

export const scimTokensV1: Pick<Required<Handlers<typeof IdentityProviders>>, Methods> = {
  async generateScimToken(call, { identityProviderId, expireTime, neverExpires }) {
    const life = { expireTime: expireTime && toIso(expireTime), neverExpires }
    return toIssued(await service.generateScimToken(call, identityProviderId, life), call.url)
  },

  async regenerateScimToken(call, { identityProviderId, expireTime, neverExpires, overlap, etag }) {
    const life = { expireTime: expireTime && toIso(expireTime), neverExpires }
    const before = { etag, overlap: overlap && milliseconds(overlap) }
    return toReplaced(await service.regenerateScimToken(call, identityProviderId, life, before), call.url)
  },

  async revokeScimToken(call, { identityProviderId }) {
    return toRevoked(await service.revokeScimToken(call, identityProviderId))
  },

  async setScimEnabled(call, { identityProviderId, enabled, etag }) {
    return toSwitched(await service.setScimEnabled(call, identityProviderId, { enabled, etag }))
  },
}

const { method } = IdentityProviders

export const scimTokenEventsV1: readonly EventBody[] = [
  eventBody(method.generateScimToken, aScimToken, (issued) => toIssued(issued, '')),
  eventBody(method.regenerateScimToken, aScimToken, (issued) => toReplaced(issued, '')),
  eventBody(method.revokeScimToken, aScimState, toRevoked),
  eventBody(method.setScimEnabled, aScimState, toSwitched),
]

function toIssued(issued: Issued, url: string) {
  const $typeName = 'pinfold.platform.iam.GenerateScimTokenResponse' as const
  return { $typeName, identityProviderId: issued.provider, ...describeIssued(issued, url) }
}

function toReplaced(issued: Issued, url: string) {
  const $typeName = 'pinfold.platform.iam.RegenerateScimTokenResponse' as const
  return { $typeName, identityProviderId: issued.provider, ...describeReplaced(issued, url) }
}

function toRevoked({ provider, etag, enabled, time }: ScimState) {
  const $typeName = 'pinfold.platform.iam.RevokeScimTokenResponse' as const
  return { $typeName, identityProviderId: provider, etag, enabled, revokeTime: timestamp(time) }
}

function toSwitched({ provider, etag, enabled }: ScimState) {
  const $typeName = 'pinfold.platform.iam.SetScimEnabledResponse' as const
  return { $typeName, identityProviderId: provider, enabled, etag }
}
