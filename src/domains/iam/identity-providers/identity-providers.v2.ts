import type { Call, Handlers } from '#app.ts'
import {
  IdentityProvider_OIDC_CorrelationRule as CorrelationRule,
  IdentityProvider_OIDC_CorrelationRuleSchema as CorrelationRuleSchema,
  IdentityProvidersService,
  type IdentityProvider as ProviderMessage,
} from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import {
  aProvider,
  type IdentityProvider,
  identityProviderFields,
  type ProviderInput,
} from './identity-providers.model.ts'
import * as service from './identity-providers.service.ts'
import { describeScim, type Shown } from './scim-settings.model.ts'
import { scimTokenEvents, scimTokens } from './scim-tokens.v2.ts'

const rules = { fields: identityProviderFields, defaultOrder: 'uid' }

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

  async deleteIdentityProvider(call, { uid }) {
    await service.deleteIdentityProvider(call, uid)
    return empty
  },

  ...scimTokens,
}

export const identityProviderEvents: readonly EventBody[] = [
  eventBody(IdentityProvidersService.method.createIdentityProvider, aProvider, (provider) => toMessage(provider)),
  eventBody(IdentityProvidersService.method.updateIdentityProvider, aProvider, (provider) => toMessage(provider)),
  deletionBody(IdentityProvidersService.method.deleteIdentityProvider),
  ...scimTokenEvents,
]

function fromMessage(provider: ProviderMessage | undefined): ProviderInput {
  if (!provider) throw invalid({ field: 'identity_provider', description: 'is required' })
  const { name, description, defaultRole, configuration } = provider
  if (configuration.case !== 'oidc') return { name, description, defaultRole }
  const { $typeName, $unknown, ...oidc } = configuration.value
  if (!Object.values<number>(CorrelationRule).includes(oidc.correlationRule)) {
    throw invalid({ field: 'oidc.correlation_rule', description: noKnownValue(CorrelationRuleSchema) })
  }
  return { name, description, defaultRole, oidc }
}

/** Without the secret. Only Get tells the state of the SCIM token, and events name no address. */
function toMessage(provider: IdentityProvider, shown: Shown = { url: '' }): ProviderMessage {
  const { oidc } = provider
  return {
    $typeName: 'pinfold.platform.iam.v2.IdentityProvider',
    uid: provider.uid,
    name: provider.name,
    description: provider.description,
    createTime: timestamp(provider.createTime),
    updateTime: timestamp(provider.updateTime),
    defaultRole: provider.defaultRole,
    configuration: {
      case: 'oidc',
      value: {
        $typeName: 'pinfold.platform.iam.v2.IdentityProvider.OIDC',
        issuer: oidc.issuer,
        clientId: oidc.clientId,
        clientSecret: '',
        additionalScopes: oidc.additionalScopes,
        groupsClaim: oidc.groupsClaim,
        correlationRule: oidc.correlationRule as CorrelationRule,
        pkceEnabled: oidc.pkceEnabled,
      },
    },
    scim: {
      $typeName: 'pinfold.platform.iam.v2.IdentityProvider.SCIM',
      ...describeScim(provider.uid, provider.scim, shown),
    },
  }
}
