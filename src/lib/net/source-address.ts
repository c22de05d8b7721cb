import { BlockList, isIP, isIPv6 } from 'node:net'

/** Proxies whose `X-Forwarded-For` is trusted: single addresses and address ranges. */
export type TrustedProxies = { has(address: string): boolean }

export function trustedProxies(ranges: readonly string[]): TrustedProxies {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  if (ranges.length === 0) return { has: () => false }
  return { has: (address) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') }
}

/** True if forwarded headers of a connection from this address are trusted. */
export function isProxy(connected: string, proxies: TrustedProxies): boolean {
  return proxies.has(plainAddress(connected))
}

/**
 * Address of the client: that of the connection, unless it is a trusted proxy. Then it is the last address of `X-Forwarded-For`
 * that is not a trusted proxy, since only the entries of trusted proxies are reliable.
 */
export function sourceAddress(connected: string, forwardedFor: string | undefined, proxies: TrustedProxies): string {
  let source = plainAddress(connected)
  if (!forwardedFor || !proxies.has(source)) return source
  for (const hop of forwardedFor.split(',').reverse()) {
    const address = plainAddress(hop.trim())
    if (!proxies.has(source) || isIP(address) === 0) break
    source = address
  }
  return source
}

/** IPv4 as IPv4, also where a socket of both families, or a peer with its port, spells it differently. */
export function plainAddress(address: string): string {
  const withoutPort = /^\[(.+)\]:\d+$/.exec(address)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(address)?.[1] ?? address
  return withoutPort.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}

/** The address, or its /64 where it is IPv6, since one client usually has all of that. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped) return mapped
  const [head = '', tail = ''] = address.split('::')
  const left = head.split(':').filter(Boolean)
  const right = tail.split(':').filter(Boolean)
  const groups = [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'), ...right]
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}

/** True for a loopback address; no other machine can send from there. */
export function isLoopback(address: string): boolean {
  return loopback.has(plainAddress(address))
}

const loopback = trustedProxies(['127.0.0.0/8', '::1'])
