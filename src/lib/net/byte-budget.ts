// Limit on the bytes of requests in memory, for each client address and in total.
import { AppError, tooMany } from '../errors.ts'
import { networkOf } from './source-address.ts'

/** Memory of a chunk in bytes, even if it has only one byte. Clients can send millions of such chunks over HTTP/2. */
const leastChunkBytes = 256

/** Number of bytes that a chunk counts. */
export function countedBytes({ length }: Uint8Array): number {
  return Math.max(length, leastChunkBytes)
}

/** Bytes in memory of one request. */
export type HeldBytes = {
  /** Adds bytes. Throws RESOURCE_EXHAUSTED with RetryInfo above the limit, and `CANCELLED` after `release`. */
  take(bytes: number): void
  /** Adds bytes. Returns false, and adds nothing, above the limit and after `release`. The request is not refused then. */
  tryTake(bytes: number): boolean
  /** Subtracts bytes that are no longer in memory. More can be added later. */
  giveBack(bytes: number): void
  /** Subtracts all bytes of the request. Call it when the request ends. */
  release(): void
}

export type ByteBudget = {
  /** Opens the count of one request. `onRefusal` is called each time that the request is refused. */
  open(source: string, onRefusal?: () => void): HeldBytes
}

/**
 * Creates the limit. All IPv6 addresses of one /64 count as one client address. A request that is alone in memory is never
 * refused, so a body larger than the limit can still arrive. `onChange` gets each change of the total.
 */
export function createByteBudget(
  most: { perSource: number; total: number },
  onChange: (bytes: number) => void = () => {},
): ByteBudget {
  const bySource = new Map<string, number>()
  let total = 0
  const add = (network: string, bytes: number): void => {
    const held = (bySource.get(network) ?? 0) + bytes
    total += bytes
    onChange(bytes)
    if (held > 0) bySource.set(network, held)
    else bySource.delete(network)
  }
  return {
    open(source, onRefusal) {
      const network = networkOf(source)
      let own = 0
      let isReleased = false
      const isOver = (held: number, bytes: number, limit: number): boolean => held + bytes > limit && held > own
      const tryTake = (bytes: number): boolean => {
        if (isReleased) return false
        if (isOver(total, bytes, most.total) || isOver(bySource.get(network) ?? 0, bytes, most.perSource)) return false
        own += bytes
        add(network, bytes)
        return true
      }
      return {
        tryTake,
        take(bytes) {
          if (isReleased) throw new AppError('CANCELLED', 'the request has ended')
          if (tryTake(bytes)) return
          onRefusal?.()
          throw tooMany('the server is receiving too many request bytes at once; retry later', 1)
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
