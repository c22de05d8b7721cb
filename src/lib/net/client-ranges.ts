import { plainAddress, trustedProxies } from './source-address.ts'

/** Set of clients: all, none, or the addresses and ranges of a list. Addresses in an entry with `!` are excluded. */
export type ClientRanges = { has(address: string): boolean }

/** Reads the set from its entries: `on`, `off`, and addresses and ranges (`192.0.2.0/24`) with or without a `!`. */
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
