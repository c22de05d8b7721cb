import type { Call, Handlers } from '#app.ts'
import {
  IdentityProvider_OIDC_CorrelationRuleSchema as CorrelationRuleSchema,
  GenerateScimTokenResponseSchema,
  IdentityProviderSchema,
  IdentityProvidersService,
  type IdentityProvider as ProviderMessage,
  RegenerateScimTokenResponseSchema,
  RevokeScimTokenResponseSchema,
  SetScimEnabledResponseSchema,
} from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import {
  type IdentityProvider,
  identityProviderFields,
  type ProviderInput,
  toProviderResource,
} from './identity-providers.model.ts'
import * as service from './identity-providers.service.ts'
import { readProvider, scimTokenHandlers, showProvider } from './identity-providers-on-the-wire.ts'
import {
  describeIssued,
  describeReplaced,
  type Shown,
  toScimStateResource,
  toScimTokenResource,
} from './scim-settings.model.ts'

const rules = { fields: identityProviderFields, defaultOrder: 'uid' }

const { method } = IdentityProvidersService
const toProvider = messageOf(IdentityProviderSchema)
const scim = {
  issued: messageOf(GenerateScimTokenResponseSchema, { identityProviderUid: 'provider' }),
  replaced: messageOf(RegenerateScimTokenResponseSchema, { identityProviderUid: 'provider' }),
  revoked: messageOf(RevokeScimTokenResponseSchema, { identityProviderUid: 'provider', revokeTime: 'time' }),
  switched: messageOf(SetScimEnabledResponseSchema, { identityProviderUid: 'provider' }),
}

export const identityProviders: Handlers<typeof IdentityProvidersService> = {
  async getIdentityProvider(call, { uid }) {
    return toMessage(await service.getIdentityProvider(call, uid), call)
  },

  async listIdentityProviders(call, request) {
    const { name } = request
    const listed = await service.listIdentityProviders(call, readList(call, request, rules, { name }))
    return listResponse(
      'pinfold.platform.iam.v2.ListIdentityProvidersResponse',
      'identityProviders',
      listed,
      (provider) => toMessage(provider, { url: call.url }),
      request,
    )
  },

  async createIdentityProvider(call, { parent, identityProvider }) {
    const created = await service.createIdentityProvider(call, parent, fromMessage(identityProvider))
    return toMessage(created, { url: call.url })
  },

  async updateIdentityProvider(call: Call, { identityProvider, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(identityProvider) }
    const updated = await service.updateIdentityProvider(call, identityProvider?.uid ?? '', patch)
    return toMessage(updated, { url: call.url })
  },

  deleteIdentityProvider: deleting('uid', service.deleteIdentityProvider),

  ...scimTokenHandlers('identityProviderUid', scim),
}

export const identityProviderEvents: readonly EventBody[] = [
  eventBody(method.createIdentityProvider, toProviderResource, (provider) => toMessage(provider)),
  eventBody(method.updateIdentityProvider, toProviderResource, (provider) => toMessage(provider)),
  deletionBody(method.deleteIdentityProvider),
  eventBody(method.generateScimToken, toScimTokenResource, (issued) => scim.issued(describeIssued(issued))),
  eventBody(method.regenerateScimToken, toScimTokenResource, (issued) => scim.replaced(describeReplaced(issued))),
  eventBody(method.revokeScimToken, toScimStateResource, scim.revoked),
  eventBody(method.setScimEnabled, toScimStateResource, scim.switched),
]

function fromMessage(provider: ProviderMessage | undefined): ProviderInput {
  return readProvider(required(provider, 'identity_provider'), CorrelationRuleSchema)
}

/**
 * Message of a provider without its secret. Only Get returns the state of the SCIM token. Events leave out the URL of the SCIM
 * endpoint.
 */
function toMessage(provider: IdentityProvider, shown: Shown = { url: '' }): ProviderMessage {
  return toProvider(showProvider(provider, shown))
}
