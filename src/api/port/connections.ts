// Limit on open connections of one client address. A connection uses memory even before its first request.
import { networkOf } from '#lib/net/source-address.ts'
import { connecting } from '#lib/scheduling/connecting.ts'

export type Connections = {
  /**
   * Counts a connection of the address. Returns false if the address has too many. If true, call `close` when the connection
   * closes.
   */
  open(address: string): boolean
  close(address: string): void
}

/**
 * Creates the limit of `most` connections for each address, or for each IPv6 /64. Exempt addresses have no limit. Calls `refused`
 * for each connection above the limit.
 */
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
