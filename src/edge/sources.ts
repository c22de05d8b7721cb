// Client addresses of requests.

import type { Logger } from '#lib/log.ts'
import { isPublicAddress } from '#lib/net/outgoing.ts'
import { isProxy, plainAddress, sourceAddress, type TrustedProxies } from '#lib/net/source-address.ts'

/** Address of the client, from the address of its connection and the forwarding header. */
export type SourceOf = (peer: string, forwardedFor: string | undefined) => string

/**
 * Creates the function. Logs once if a proxy seems to be missing in the settings. All clients of such a proxy would share one
 * limit.
 */
export function createSources(proxies: TrustedProxies, log: Logger): SourceOf {
  let warned = false
  return (peer, forwardedFor) => {
    if (forwardedFor !== undefined && !warned && isUnnamedProxy(peer, proxies)) {
      warned = true
      log.warn('requests are forwarded by a proxy that is not trusted; all its clients count as one', {
        remoteAddress: plainAddress(peer),
        setting: 'PINFOLD_TRUSTED_PROXIES',
      })
    }
    return sourceAddress(peer, forwardedFor, proxies)
  }
}

/**
 * True if the address is private and not that of a trusted proxy, so it is probably a proxy that is missing in the settings.
 * Clients may send the header themselves, but seldom from a private address.
 */
function isUnnamedProxy(peer: string, proxies: TrustedProxies): boolean {
  return peer !== '' && !isProxy(peer, proxies) && !isPublicAddress(plainAddress(peer))
}
