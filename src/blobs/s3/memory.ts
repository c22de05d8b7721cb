// How much of uploads a process holds in memory. A piece is reserved as a whole before it is filled, so whoever has begun
// one can also send it, and nobody waits for somebody who waits.
import { StoreAway } from '../blobs.ts'

export type Memory = {
  /** Waits for its turn. Rejects with StoreAway when that takes too long, and when `signal` is aborted. */
  reserve(bytes: number, signal: AbortSignal): Promise<Reserved>
  /** Bytes that are reserved now. */
  held(): number
}

export type Reserved = {
  /** Once; what comes later does nothing. */
  free(): void
}

/** One that is larger than all there is gets in alone. */
export function createMemory(bytes: number, waitMs: number): Memory {
  let held = 0
  const waiting: { bytes: number; go(): void }[] = []

  const fits = (more: number): boolean => held === 0 || held + more <= bytes
  const take = (size: number): Reserved => {
    held += size
    let isFree = false
    return {
      free() {
        if (isFree) return
        isFree = true
        held -= size
        while (waiting.length > 0 && fits(waiting[0]!.bytes)) waiting.shift()!.go()
      },
    }
  }
  return {
    held: () => held,
    reserve(size, signal) {
      if (waiting.length === 0 && fits(size)) return Promise.resolve(take(size))
      return new Promise((resolve, reject) => {
        const leave = (error: unknown): void => {
          const at = waiting.indexOf(entry)
          if (at !== -1) waiting.splice(at, 1)
          end()
          reject(error)
        }
        const entry = {
          bytes: size,
          go: () => {
            end()
            resolve(take(size))
          },
        }
        const stop = (): void => leave(signal.reason)
        const timer = setTimeout(() => leave(new StoreAway('too many uploads are on their way to the bucket')), waitMs)
        const end = (): void => {
          clearTimeout(timer)
          signal.removeEventListener('abort', stop)
        }
        signal.addEventListener('abort', stop)
        waiting.push(entry)
      })
    },
  }
}
