// How many connections one client may have open: each costs memory before it has asked for anything.
import { networkOf } from '#lib/net/source-address.ts'
import { connecting } from '#lib/scheduling/connecting.ts'

export type Connections = {
  /** Whether one more may be opened from there; then `close` has to be called once it is closed. */
  open(address: string): boolean
  close(address: string): void
}

/** At most `most` from one address, or one /64 of IPv6; as many as they like from an address that is exempt. `refused` hears of each above that. */
export function createConnections(
  most: number,
  isExempt: (address: string) => boolean,
  refused: () => void = () => {},
): Connections {
  const open = new Map<string, number>()
  return {
    open(address) {
      connecting.note()
      if (isExempt(address)) return true
      const network = networkOf(address)
      const count = open.get(network) ?? 0
      if (count >= most) {
        refused()
        return false
      }
      open.set(network, count + 1)
      return true
    },
    close(address) {
      if (isExempt(address)) return
      const network = networkOf(address)
      const left = (open.get(network) ?? 0) - 1
      if (left > 0) open.set(network, left)
      else open.delete(network)
    },
  }
}
