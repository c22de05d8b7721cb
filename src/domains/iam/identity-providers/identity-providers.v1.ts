// Version 1 of identity providers. It has other names, complete lists, a PUT that replaces providers, and an optional default
// role.
import type { Handlers } from '#app.ts'
import {
  IdentityProvider_OIDC_CorrelationRuleSchema as CorrelationRuleSchema,
  GenerateScimTokenResponseSchema,
  IdentityProviderSchema,
  IdentityProviders,
  type IdentityProvider as ProviderMessage,
  RegenerateScimTokenResponseSchema,
  RevokeScimTokenResponseSchema,
  SetScimEnabledResponseSchema,
} from '#gen/pinfold/iam/v1/identity_providers_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { withFieldNames } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { type IdentityProvider, type ProviderInput, toProviderResource } from './identity-providers.model.ts'
import * as service from './identity-providers.service.ts'
import { readProvider, scimTokenHandlers, showProvider } from './identity-providers-on-the-wire.ts'
import {
  describeIssued,
  describeReplaced,
  type Shown,
  toScimStateResource,
  toScimTokenResource,
} from './scim-settings.model.ts'

/** Fields that a PUT replaces. If a PUT has no secret, the stored secret is kept. */
const replaced = ['name', 'description', 'default_role', 'oidc']
const rules = { defaultRole: 'optional' } as const

const { method } = IdentityProviders
const toProvider = messageOf(IdentityProviderSchema, { id: 'uid' })
const scim = {
  issued: messageOf(GenerateScimTokenResponseSchema, { identityProviderId: 'provider' }),
  replaced: messageOf(RegenerateScimTokenResponseSchema, { identityProviderId: 'provider' }),
  revoked: messageOf(RevokeScimTokenResponseSchema, { identityProviderId: 'provider', revokeTime: 'time' }),
  switched: messageOf(SetScimEnabledResponseSchema, { identityProviderId: 'provider' }),
}

const inV1 = <T>(work: Promise<T>): Promise<T> => withFieldNames({ parent: 'parent_id' }, work)

export const identityProvidersV1: Handlers<typeof IdentityProviders> = {
  async create(call, { parentId, identityProvider }) {
    const input = fromMessage(identityProvider)
    const created = await inV1(service.createIdentityProvider(call, parentId, input, rules))
    return toMessage(created, { url: call.url })
  },

  async update(call, provider) {
    const patch = { paths: replaced, value: fromMessage(provider) }
    return toMessage(await service.updateIdentityProvider(call, provider.id, patch, rules), { url: call.url })
  },

  async list(call, { id, name, uidp }) {
    const shown = id === '' ? { url: call.url } : call
    const providers = await wholeList(call, { uidp, id }, { name }, service.listIdentityProviders)
    const items = providers.map((provider) => toMessage(provider, shown))
    return { $typeName: 'pinfold.platform.iam.IdentityProviderList', items }
  },

  delete: deleting('id', service.deleteIdentityProvider),

  ...scimTokenHandlers('identityProviderId', scim),
}

export const identityProviderEventsV1: readonly EventBody[] = [
  eventBody(method.create, toProviderResource, (provider) => toMessage(provider)),
  eventBody(method.update, toProviderResource, (provider) => toMessage(provider)),
  deletionBody(method.delete),
  eventBody(method.generateScimToken, toScimTokenResource, (issued) => scim.issued(describeIssued(issued))),
  eventBody(method.regenerateScimToken, toScimTokenResource, (issued) => scim.replaced(describeReplaced(issued))),
  eventBody(method.revokeScimToken, toScimStateResource, scim.revoked),
  eventBody(method.setScimEnabled, toScimStateResource, scim.switched),
]

function fromMessage(provider: ProviderMessage | undefined): ProviderInput {
  return readProvider(required(provider, 'identity_provider'), CorrelationRuleSchema)
}

/**
 * Message of a provider without its secret. Only a list of a single provider includes the state of the SCIM token. Events leave
 * out the URL of the SCIM endpoint.
 */
function toMessage(provider: IdentityProvider, shown: Shown = { url: '' }): ProviderMessage {
  return toProvider(showProvider(provider, shown))
}
