import { plainAddress, trustedProxies } from './source-address.ts'

/** Which clients something is for: all, none, or those of some addresses and ranges; what is in one with a `!` is not. */
export type ClientRanges = { has(address: string): boolean }

/** Entries are `on`, `off`, addresses and CIDR ranges, the latter two also with a `!`. */
export function clientRanges(entries: readonly string[]): ClientRanges {
  const out = trustedProxies(entries.filter((one) => one.startsWith('!')).map((one) => one.slice(1)))
  const named = entries.filter((one) => !one.startsWith('!') && one !== 'on' && one !== 'off')
  const within = trustedProxies(named)
  const all = entries.includes('on')
  return {
    has(address) {
      const plain = plainAddress(address)
      return (all || within.has(plain)) && !out.has(plain)
    },
  }
}
