// Private addresses that the operator allows for outgoing requests of one purpose.
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** True if a request to `host` with this private address is allowed. */
export type PrivateAddresses = { has(host: string, address: string): boolean }

/**
 * Reads the entries. A name allows all private addresses that it resolves to, but not those of its sub-domains. An address or a
 * range allows requests to its addresses under any name. Link-local addresses, at which clouds also provide credentials to
 * machines, need an entry that is itself link-local. If an IPv6 address leads to an IPv4 address, both are checked.
 */
export function privateAddresses(entries: readonly string[]): PrivateAddresses {
  const names = new Set<string>()
  const ranges = createRanges()
  const ofLinks = createRanges()
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    if (isIP(address) === 0) names.add(plain(entry))
    else {
      ranges.add(address, bits)
      if (spellingsOf(address).some(links.has)) ofLinks.add(address, bits)
    }
  }
  return {
    has(host, address) {
      const ofLink = spellingsOf(address).filter(links.has)
      if (ofLink.length > 0) return ofLinks.has(address) || ofLink.every(ofLinks.has)
      return names.has(plain(host)) || ranges.has(address)
    },
  }
}

/** The address, and the IPv4 addresses that it may lead to: mapped, by NAT64 (RFC 6052, RFC 8215) and by 6to4. */
function spellingsOf(address: string): string[] {
  const groups = isIPv6(address) ? groupsOf(address) : []
  const [a, b, c, d = 0, e = 0, f = 0, g = 0, h = 0] = groups
  const found = [address]
  const add = (high: number, low: number) => found.push([high >> 8, high & 255, low >> 8, low & 255].join('.'))
  const isMapped = groups.length > 0 && groups.slice(0, 5).every((group) => group === 0) && f === 0xffff
  const isNat64 = a === 0x64 && b === 0xff9b && (c === 0 || c === 1)
  if (isMapped || isNat64) add(g, h)
  // Each network chooses the length of its NAT64 prefix, so all possible positions of the IPv4 address are read. The octet in the
  // middle is never part of it.
  if (isNat64 && c === 1) {
    add(d, ((e & 255) << 8) | (f >> 8))
    add(((d & 255) << 8) | (e & 255), f)
    add(((e & 255) << 8) | (f >> 8), ((f & 255) << 8) | (g >> 8))
  }
  if (a === 0x2002) add(b!, c!)
  return found
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  // The URL parser converts each address to one normal form.
  const [head = '', tail] = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1).split('::')
  const left = head.split(':').filter(Boolean)
  const right = (tail ?? '').split(':').filter(Boolean)
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16))
}

/** Allows all private addresses. */
export const allPrivateAddresses: PrivateAddresses = { has: () => true }

/** Host of a URL in the form of an entry: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function plain(host: string): string {
  return host.toLowerCase().replace(/\.$/, '')
}

/** Address ranges. IPv4 and IPv6 have separate lists, since a common list would treat IPv4 addresses as mapped IPv6 addresses. */
function createRanges() {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  const familyOf = (address: string) => (isIPv4(address) ? 'ipv4' : 'ipv6')
  return {
    add(address: string, bits?: string): void {
      const family = familyOf(address)
      lists[family].addSubnet(address, Number(bits ?? (family === 'ipv4' ? 32 : 128)), family)
    },
    has(address: string): boolean {
      return isIP(address) !== 0 && lists[familyOf(address)].check(address, familyOf(address))
    },
  }
}

/** Link-local addresses, and other addresses at which clouds provide credentials to machines. */
const links = createRanges()
links.add('169.254.0.0', '16')
links.add('168.63.129.16')
links.add('100.100.100.200')
links.add('fe80::', '10')
links.add('fd00:ec2::254')
links.add('fd20:ce::254')

/** Private addresses that are allowed for one purpose: the given entries, or all addresses if the settings allow all. */
export function allowedAddresses(
  { allowPrivateAddresses }: { allowPrivateAddresses: boolean },
  entries: readonly string[],
): PrivateAddresses {
  return allowPrivateAddresses ? allPrivateAddresses : privateAddresses(entries)
}
