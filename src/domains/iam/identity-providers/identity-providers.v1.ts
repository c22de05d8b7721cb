// Version 1 of identity providers: other names, lists in full, a PUT that replaces, and no need for a default role.
import type { Handlers } from '#app.ts'
import {
  IdentityProvider_OIDC_CorrelationRule as CorrelationRule,
  IdentityProvider_OIDC_CorrelationRuleSchema as CorrelationRuleSchema,
  IdentityProviders,
  type IdentityProvider as ProviderMessage,
} from '#gen/pinfold/iam/v1/identity_providers_pb.ts'
import { invalid, noKnownValue, withFieldNames } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { empty } from '#lib/wire.ts'
import { aProvider, type IdentityProvider, type ProviderInput } from './identity-providers.model.ts'
import * as service from './identity-providers.service.ts'
import { describeScim, type Shown } from './scim-settings.model.ts'
import { scimTokenEventsV1, scimTokensV1 } from './scim-tokens.v1.ts'

/** The secret is not among them: a PUT without one keeps it. */
const replaced = ['name', 'description', 'default_role', 'oidc']
const rules = { defaultRole: 'optional' } as const

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

  async delete(call, { id }) {
    await service.deleteIdentityProvider(call, id)
    return empty
  },

  ...scimTokensV1,
}

export const identityProviderEventsV1: readonly EventBody[] = [
  eventBody(IdentityProviders.method.create, aProvider, (provider) => toMessage(provider)),
  eventBody(IdentityProviders.method.update, aProvider, (provider) => toMessage(provider)),
  deletionBody(IdentityProviders.method.delete),
  ...scimTokenEventsV1,
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

/** Without the secret. Only a list of one tells the state of the SCIM token, and events name no address. */
function toMessage(
  { uid, name, description, defaultRole, oidc, scim }: IdentityProvider,
  shown: Shown = { url: '' },
): ProviderMessage {
  return {
    $typeName: 'pinfold.platform.iam.IdentityProvider',
    id: uid,
    name,
    description,
    defaultRole,
    configuration: {
      case: 'oidc',
      value: {
        $typeName: 'pinfold.platform.iam.IdentityProvider.OIDC',
        ...oidc,
        correlationRule: oidc.correlationRule as CorrelationRule,
        clientSecret: '',
      },
    },
    scim: {
      $typeName: 'pinfold.platform.iam.IdentityProvider.SCIM',
      ...describeScim(uid, scim, shown),
    },
  }
}
