import { BlockList, isIP, isIPv6 } from 'node:net'

/** Trusted proxies, as single addresses and address ranges. Only their `X-Forwarded-For` header is used. */
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

/** True if the forwarding headers of a connection from this address can be trusted. */
export function isProxy(connected: string, proxies: TrustedProxies): boolean {
  return proxies.has(plainAddress(connected))
}

/**
 * Address of the client. Without a trusted proxy, it is the address of the connection. Otherwise it is the last address of
 * `X-Forwarded-For` that is not a trusted proxy, since clients can send the entries before it.
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

/** Normal form of an address. A mapped IPv4 address becomes IPv4, and a port is removed. */
export function plainAddress(address: string): string {
  const withoutPort = /^\[(.+)\]:\d+$/.exec(address)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(address)?.[1] ?? address
  return withoutPort.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}

/** The address, or its /64 network for IPv6, since one client usually has the whole network. */
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

/** True for a loopback address. Only this machine can send from such an address. */
export function isLoopback(address: string): boolean {
  return loopback.has(plainAddress(address))
}

const loopback = trustedProxies(['127.0.0.0/8', '::1'])
