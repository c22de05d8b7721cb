// Cache of the discovery documents of sign-in providers. Each is cached for ten minutes.
import { Newest } from '#lib/caches/newest.ts'
import { AppError } from '#lib/errors.ts'
import type { Outgoing } from '#lib/net/outgoing.ts'

const freshForMs = 10 * 60_000
const failedForMs = 10_000
const maxProviders = 1000

export type ProviderMetadata = Readonly<Record<string, unknown>> & { readonly issuer: string }

export type ProviderDirectory = {
  /** Discovery document of an issuer. Throws UNAVAILABLE if the document cannot be read, or if it names another issuer. */
  of(issuer: string): Promise<ProviderMetadata>
}

type Entry = { metadata: Promise<ProviderMetadata>; loadedAt: number; failedAt?: number }

/** Creates the directory. `monotonic` returns milliseconds of a monotonic clock. */
export function createProviderDirectory(
  outgoing: Pick<Outgoing, 'getJson'>,
  monotonic: () => number,
): ProviderDirectory {
  const entries = new Newest<string, Entry>(maxProviders)
  return {
    of(issuer) {
      const now = monotonic()
      const held = entries.get(issuer)
      const isFresh =
        held && (held.failedAt === undefined ? now - held.loadedAt < freshForMs : now - held.failedAt < failedForMs)
      if (isFresh) return held.metadata
      const entry: Entry = { metadata: read(outgoing, issuer), loadedAt: now }
      entries.set(issuer, entry)
      // After a failed request, the provider is not requested again for a short time.
      entry.metadata.catch(() => {
        entry.failedAt = monotonic()
      })
      return entry.metadata
    },
  }
}

async function read(outgoing: Pick<Outgoing, 'getJson'>, issuer: string): Promise<ProviderMetadata> {
  const document = await outgoing
    .getJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
    .catch((cause: unknown) => {
      throw unavailableProvider('the discovery document of the identity provider cannot be read; retry later', cause)
    })
  const metadata = (document ?? {}) as Record<string, unknown>
  if (metadata.issuer !== issuer) {
    throw unavailableProvider(
      'the discovery document of the identity provider names another issuer',
      new Error(String(metadata.issuer)),
    )
  }
  return metadata as ProviderMetadata
}

function unavailableProvider(message: string, cause: unknown): AppError {
  return new AppError('UNAVAILABLE', message, { details: [{ type: 'RetryInfo', retryDelaySeconds: 10 }], cause })
}
