// Source addresses of requests, as far as they can be known.

import type { Logger } from '#lib/log.ts'
import { isPublicAddress } from '#lib/net/outgoing.ts'
import { isProxy, plainAddress, sourceAddress, type TrustedProxies } from '#lib/net/source-address.ts'

/** Address of the client, from that of its connection and the forwarding header. */
export type SourceOf = (peer: string, forwardedFor: string | undefined) => string

/** Creates the function. Logs once if a proxy seems to be missing in the settings, since all its clients count as one. */
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

/** Clients send the header too, but seldom from such an address. */
function isUnnamedProxy(peer: string, proxies: TrustedProxies): boolean {
  return peer !== '' && !isProxy(peer, proxies) && !isPublicAddress(plainAddress(peer))
}
