// Conversion of identity providers and their SCIM settings between the model and the messages of both versions.
import type { Call } from '#app.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { type Instant, toIso } from '#lib/timestamp.ts'
import { milliseconds } from '#lib/wire.ts'
import type { IdentityProvider, Oidc, ProviderInput } from './identity-providers.model.ts'
import { describeIssued, describeReplaced, describeScim, type ScimState, type Shown } from './scim-settings.model.ts'
import * as service from './scim-settings.service.ts'

type Texts = Pick<ProviderInput, 'name' | 'description' | 'defaultRole'>
type OidcMessage = Oidc & { $typeName: string; $unknown?: unknown; clientSecret: string }
type Configuration = { case: 'oidc'; value: OidcMessage } | { case: undefined; value?: undefined }
type Rules = { name: string; values: readonly { name: string; number: number }[] }

/** Reads a provider from a message. `correlationRules` is the enum of the version. */
export function readProvider(
  { name, description, defaultRole, configuration }: Texts & { configuration: Configuration },
  correlationRules: Rules,
): ProviderInput {
  if (configuration.case !== 'oidc') return { name, description, defaultRole }
  const { $typeName, $unknown, ...oidc } = configuration.value
  if (!correlationRules.values.some(({ number }) => number === oidc.correlationRule)) {
    throw invalid({ field: 'oidc.correlation_rule', description: noKnownValue(correlationRules) })
  }
  return { name, description, defaultRole, oidc }
}

/** Members of the message of a provider, without the secret. */
export function showProvider(provider: IdentityProvider, shown: Shown) {
  const configuration = { case: 'oidc', value: { ...provider.oidc, clientSecret: '' } } as const
  return { ...provider, configuration, scim: describeScim(provider.uid, provider.scim, shown) }
}

type Life = { expireTime?: Instant | undefined; neverExpires: boolean }
type Overlap = { overlap?: { seconds: bigint; nanos: number } | undefined; etag: string }

/**
 * Handlers of the SCIM methods. `member` is the field with the uid of the provider in requests. `to` converts results to
 * responses.
 */
export function scimTokenHandlers<K extends string, I, R, V, S>(
  member: K,
  to: {
    issued: (value: ReturnType<typeof describeIssued>) => I
    replaced: (value: ReturnType<typeof describeReplaced>) => R
    revoked: (value: ScimState) => V
    switched: (value: ScimState) => S
  },
) {
  type Request = Record<K, string>
  const lifeOf = ({ expireTime, neverExpires }: Life) => ({ expireTime: expireTime && toIso(expireTime), neverExpires })
  return {
    async generateScimToken(call: Call, request: Request & Life): Promise<I> {
      return to.issued(
        describeIssued(await service.generateScimToken(call, request[member], lifeOf(request)), call.url),
      )
    },

    async regenerateScimToken(call: Call, request: Request & Life & Overlap): Promise<R> {
      const { overlap, etag } = request
      const before = { etag, overlap: overlap && milliseconds(overlap) }
      const issued = await service.regenerateScimToken(call, request[member], lifeOf(request), before)
      return to.replaced(describeReplaced(issued, call.url))
    },

    async revokeScimToken(call: Call, request: Request): Promise<V> {
      return to.revoked(await service.revokeScimToken(call, request[member]))
    },

    async setScimEnabled(call: Call, request: Request & { enabled: boolean; etag: string }): Promise<S> {
      const { enabled, etag } = request
      return to.switched(await service.setScimEnabled(call, request[member], { enabled, etag }))
    },
  }
}
