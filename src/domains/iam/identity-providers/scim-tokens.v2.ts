// The methods of identity providers that are about their SCIM endpoint.
import type { Handlers } from '#app.ts'
import { IdentityProvidersService } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
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

export const scimTokens: Pick<Required<Handlers<typeof IdentityProvidersService>>, Methods> = {
  async generateScimToken(call, { identityProviderUid, expireTime, neverExpires }) {
    const life = { expireTime: expireTime && toIso(expireTime), neverExpires }
    return toIssued(await service.generateScimToken(call, identityProviderUid, life), call.url)
  },

  async regenerateScimToken(call, { identityProviderUid, expireTime, neverExpires, overlap, etag }) {
    const life = { expireTime: expireTime && toIso(expireTime), neverExpires }
    const before = { etag, overlap: overlap && milliseconds(overlap) }
    return toReplaced(await service.regenerateScimToken(call, identityProviderUid, life, before), call.url)
  },

  async revokeScimToken(call, { identityProviderUid }) {
    return toRevoked(await service.revokeScimToken(call, identityProviderUid))
  },

  async setScimEnabled(call, { identityProviderUid, enabled, etag }) {
    return toSwitched(await service.setScimEnabled(call, identityProviderUid, { enabled, etag }))
  },
}

const { method } = IdentityProvidersService

export const scimTokenEvents: readonly EventBody[] = [
  eventBody(method.generateScimToken, aScimToken, (issued) => toIssued(issued, '')),
  eventBody(method.regenerateScimToken, aScimToken, (issued) => toReplaced(issued, '')),
  eventBody(method.revokeScimToken, aScimState, toRevoked),
  eventBody(method.setScimEnabled, aScimState, toSwitched),
]

function toIssued(issued: Issued, url: string) {
  const $typeName = 'pinfold.platform.iam.v2.GenerateScimTokenResponse' as const
  return { $typeName, identityProviderUid: issued.provider, ...describeIssued(issued, url) }
}

function toReplaced(issued: Issued, url: string) {
  const $typeName = 'pinfold.platform.iam.v2.RegenerateScimTokenResponse' as const
  return { $typeName, identityProviderUid: issued.provider, ...describeReplaced(issued, url) }
}

function toRevoked({ provider, etag, enabled, time }: ScimState) {
  const $typeName = 'pinfold.platform.iam.v2.RevokeScimTokenResponse' as const
  return { $typeName, identityProviderUid: provider, etag, enabled, revokeTime: timestamp(time) }
}

function toSwitched({ provider, etag, enabled }: ScimState) {
  const $typeName = 'pinfold.platform.iam.v2.SetScimEnabledResponse' as const
  return { $typeName, identityProviderUid: provider, enabled, etag }
}
