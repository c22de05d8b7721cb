// Limit on the bytes of requests in memory, for each client address and in total.
import { AppError, tooMany } from '../errors.ts'
import { networkOf } from './source-address.ts'

/** Bytes in memory of one request. */
export type HeldBytes = {
  /** Adds bytes. Throws RESOURCE_EXHAUSTED with RetryInfo above the limit, and `CANCELLED` after `release`. */
  take(bytes: number): void
  /** Subtracts bytes that are no longer in memory. More can be added later. */
  giveBack(bytes: number): void
  /** Subtracts all bytes of the request. Call it when the request ends. */
  release(): void
}

export type ByteBudget = { open(source: string): HeldBytes }

/** Creates the limit. All IPv6 addresses of one /64 count as one client address. */
export function createByteBudget(most: { perSource: number; total: number }): ByteBudget {
  const bySource = new Map<string, number>()
  let total = 0
  const add = (network: string, bytes: number): void => {
    const held = (bySource.get(network) ?? 0) + bytes
    total += bytes
    if (held > 0) bySource.set(network, held)
    else bySource.delete(network)
  }
  return {
    open(source) {
      const network = networkOf(source)
      let own = 0
      let isReleased = false
      return {
        take(bytes) {
          if (isReleased) throw new AppError('CANCELLED', 'the request has ended')
          if (total + bytes > most.total || (bySource.get(network) ?? 0) + bytes > most.perSource) {
            throw tooMany('the server is receiving too many request bytes at once; retry later', 1)
          }
          own += bytes
          add(network, bytes)
        },
        giveBack(bytes) {
          if (isReleased) return
          const back = Math.min(bytes, own)
          own -= back
          add(network, -back)
        },
        release() {
          if (isReleased) return
          isReleased = true
          if (own > 0) add(network, -own)
        },
      }
    },
  }
}
