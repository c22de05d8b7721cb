import type { Ground } from '#app.ts'
import { createExpiringCache } from '#lib/caches/expiring-cache.ts'
import { createOutgoingStreams } from '#lib/net/outgoing-streams.ts'
import { allowedAddresses } from '#lib/net/private-addresses.ts'
import { createHostRateLimits } from '#lib/registries/host-rate-limits.ts'
import { createRegistryClient } from '#lib/registries/registry-client.ts'
import { createRegistryTokens } from '#lib/registries/registry-tokens.ts'
import { createSignal } from '#lib/signal.ts'
import type { MirrorsParts } from './parts.ts'

/** Most tags in the cache of tags for which upstreams need not be asked again yet. */
const mostSilent = 20_000

export function openMirrors({ config, clock, monotonic }: Ground): MirrorsParts {
  const outgoing = createOutgoingStreams({
    allowed: allowedAddresses(config, config.upstreamsPrivate),
    allowHttp: config.allowInsecureUpstreams,
  })
  const upstreams = createRegistryClient({
    outgoing,
    tokens: createRegistryTokens(outgoing, monotonic),
    paces: createHostRateLimits(monotonic),
    now: () => clock().getTime(),
  })
  const signals = { due: createSignal(), fetches: createSignal(), histories: createSignal() }
  return { follows: { ...signals, flights: new Map(), silent: createExpiringCache(mostSilent) }, upstreams }
}
