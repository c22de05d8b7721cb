// Which address a request came from, as far as we can tell.

import type { Logger } from '#lib/log.ts'
import { isPublicAddress } from '#lib/net/outgoing.ts'
import { isProxy, plainAddress, sourceAddress, type TrustedProxies } from '#lib/net/source-address.ts'

/** The address of the client, from that of its connection and what was forwarded with the request. */
export type SourceOf = (peer: string, forwardedFor: string | undefined) => string

/** Says once in the log when a proxy seems to be in front that the settings do not name: all its clients count as one. */
export function createSources(proxies: TrustedProxies, log: Logger): SourceOf {
  let warned = false
  return (peer, forwardedFor) => {
    if (forwardedFor !== undefined && !warned && isUnnamedProxy(peer, proxies)) {
      warned = true
      log.warn('an address that is not a trusted proxy forwards requests; all its clients count as one', {
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
