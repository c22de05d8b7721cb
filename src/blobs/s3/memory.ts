// How much of uploads a process holds in memory. A piece is reserved as a whole before it is filled, so whoever has begun
// one can also send it, and nobody waits for somebody who waits. Of one owner no more than half is held while others wait for
// theirs, and whoever fills a piece slowly loses it to those who wait.
import { StoreAway } from '../blobs.ts'

export type Memory = {
  /** Waits for its turn. Rejects with StoreAway when that takes too long, and when `signal` is aborted. */
  reserve(bytes: number, signal: AbortSignal, by?: Holder): Promise<Reserved>
  /** Bytes that are reserved now. */
  held(): number
}

export type Holder = {
  /** Whose share it is of; nobody's where it is empty. */
  owner: string
  /** Bytes that have come of the piece; `undefined` once all of them have. */
  filled(): number | undefined
  /** Told when others are to have the piece; it is free then. */
  take(why: StoreAway): void
}

export type Reserved = {
  /** Once; what comes later does nothing. */
  free(): void
}

export type MemoryOptions = {
  waitMs: number
  /** From when on a piece that is still being filled may be taken away, */
  slowMs?: number
  /** where fewer bytes than these have come in a second. */
  leastRate?: number
  monotonic?: () => number
}

type Piece = { bytes: number; owner: string; since: number; holder: Holder | undefined; free(): void }
type Waiter = { bytes: number; owner: string; go(): void }

const defaultSlowMs = 10_000
const defaultRate = 64 * 1024

function isSlow({ holder }: Piece, ms: number, { slowMs = defaultSlowMs, leastRate = defaultRate }: MemoryOptions) {
  const filled = holder?.filled()
  return filled !== undefined && ms >= slowMs && filled < (ms / 1000) * leastRate
}

function heldBy(pieces: Iterable<Piece>, owner: string): number {
  let sum = 0
  for (const piece of pieces) if (piece.owner === owner) sum += piece.bytes
  return sum
}

/** One that is larger than all there is gets in alone. */
export function createMemory(bytes: number, options: MemoryOptions): Memory {
  const { waitMs, slowMs = defaultSlowMs, monotonic = () => performance.now() } = options
  let held = 0
  const pieces = new Set<Piece>()
  const waiting = new Set<Waiter>()
  let looking: NodeJS.Timeout | undefined

  const hasShare = ({ bytes: more, owner }: Pick<Waiter, 'bytes' | 'owner'>): boolean => {
    if (owner === '') return true
    const has = heldBy(pieces, owner)
    return has === 0 || has + more <= bytes / 2
  }
  const fits = (more: number): boolean => held === 0 || held + more <= bytes
  /** Whoever has its share already comes after those who have not. */
  const next = (): Waiter | undefined => [...waiting].find(hasShare) ?? [...waiting][0]

  const admit = (): void => {
    for (let one = next(); one && fits(one.bytes); one = next()) {
      waiting.delete(one)
      one.go()
    }
  }
  const take = (size: number, holder: Holder | undefined): Reserved => {
    const piece: Piece = {
      bytes: size,
      owner: holder?.owner ?? '',
      since: monotonic(),
      holder,
      free() {
        if (!pieces.delete(piece)) return
        held -= size
        admit()
      },
    }
    held += size
    pieces.add(piece)
    return piece
  }
  /** While somebody waits. */
  const look = (): void => {
    looking = undefined
    for (const piece of pieces) {
      if (waiting.size === 0) return
      if (!isSlow(piece, monotonic() - piece.since, options)) continue
      piece.holder!.take(crowded('it came too slowly while others waited'))
      piece.free()
    }
    if (waiting.size > 0) lookLater()
  }
  const lookLater = (): void => {
    if (!looking) looking = setTimeout(look, Math.max(1, slowMs / 10)).unref()
  }

  return {
    held: () => held,
    reserve(size, signal, holder) {
      const asked = { bytes: size, owner: holder?.owner ?? '' }
      if (waiting.size === 0 && fits(size)) return Promise.resolve(take(size, holder))
      return new Promise((resolve, reject) => {
        const leave = (error: unknown): void => {
          waiting.delete(entry)
          end()
          reject(error)
          // It may have been what others waited behind.
          admit()
        }
        const entry = {
          ...asked,
          go: () => {
            end()
            resolve(take(size, holder))
          },
        }
        const stop = (): void => leave(signal.reason)
        const timer = setTimeout(() => leave(crowded('too many uploads are on their way to the bucket')), waitMs)
        const end = (): void => {
          clearTimeout(timer)
          signal.removeEventListener('abort', stop)
        }
        signal.addEventListener('abort', stop)
        waiting.add(entry)
        // It may have its share to come where those before have had theirs.
        admit()
        if (waiting.size > 0) lookLater()
      })
    },
  }
}

const crowded = (why: string): StoreAway => new StoreAway(why, { reason: 'TOO_BUSY' })
