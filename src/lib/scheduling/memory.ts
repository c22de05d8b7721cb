// Budget for memory that a process uses for one purpose, such as uploads. A piece is reserved as a whole before it is filled, so
// a reserved piece can always be sent, and no owner waits for one that waits itself. While others wait for their shares, one
// owner keeps no more than half. It loses further pieces that are not filled yet, and pieces that fill slowly, to the owners that
// wait.
export type Memory = {
  /** Waits for its turn. Rejects with an error of `refusal` when that takes too long, and when `signal` is aborted. */
  reserve(bytes: number, signal: AbortSignal, by?: Holder): Promise<Reserved>
  /** Bytes that are reserved now. */
  held(): number
}

export type Holder = {
  /** Owner whose share the piece counts toward; empty for none. */
  owner: string
  /** Bytes of the piece that have arrived; `undefined` once all of them have. */
  filled(): number | undefined
  /** Called when the piece is given to others; it is free then. */
  take(why: Error): void
}

export type Reserved = {
  /** Frees the piece; later calls do nothing. */
  free(): void
}

export type MemoryOptions = {
  waitMs: number
  /** Creates the error for a piece that waits too long, or is taken away. */
  refusal(why: string): Error
  /** Why one has to wait too long. */
  crowded: string
  /**
   * Milliseconds after which a piece that is still being filled may be taken away: one beyond the half of its owner, or a slow
   * one.
   */
  slowMs?: number
  /** Bytes per second below which a piece counts as slow. */
  leastRate?: number
  monotonic?: () => number
}

type Piece = { bytes: number; owner: string; since: number; holder: Holder | undefined; free(): void }
type Waiter = { bytes: number; owner: string; go(): void }

const defaultSlowMs = 10_000
const defaultRate = 64 * 1024

/** Pieces that are being filled, least filled first, since least is lost with them. */
function leastFilled(pieces: Iterable<Piece>): { piece: Piece; filled: number }[] {
  const filling = [...pieces].flatMap((piece) => {
    const filled = piece.holder?.filled()
    return filled === undefined ? [] : [{ piece, filled }]
  })
  return filling.sort((a, b) => a.filled - b.filled)
}

function heldBy(pieces: Iterable<Piece>, owner: string): number {
  let sum = 0
  for (const piece of pieces) if (piece.owner === owner) sum += piece.bytes
  return sum
}

/** True if the owner may have the piece that it waits for while others wait; `bytes` is the size of the memory. */
function hasShare(pieces: Iterable<Piece>, { bytes: more, owner }: Waiter, bytes: number): boolean {
  if (owner === '') return true
  const has = heldBy(pieces, owner)
  return has === 0 || has + more <= bytes / 2
}

/** True if the owner of a piece has more than half of `bytes`, and more than this piece. */
function hasMore(pieces: Iterable<Piece>, { bytes: one, owner }: Piece, bytes: number): boolean {
  const has = owner === '' ? 0 : heldBy(pieces, owner)
  return has > bytes / 2 && has > one
}

/** One that is larger than all there is gets in alone. */
export function createMemory(bytes: number, options: MemoryOptions): Memory {
  const { waitMs, refusal, slowMs = defaultSlowMs, leastRate = defaultRate } = options
  const { monotonic = () => performance.now() } = options
  let held = 0
  const pieces = new Set<Piece>()
  const waiting = new Set<Waiter>()
  let looking: NodeJS.Timeout | undefined

  const fits = (more: number): boolean => held === 0 || held + more <= bytes
  /** Owners that already have their share come after the others. */
  const next = (): Waiter | undefined => [...waiting].find((one) => hasShare(pieces, one, bytes)) ?? [...waiting][0]

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
  const whyTaken = (piece: Piece, filled: number): string | undefined => {
    const ms = monotonic() - piece.since
    if (ms < slowMs) return undefined
    if (filled < (ms / 1000) * leastRate) return 'it was sent too slowly while other uploads waited'
    if (!hasMore(pieces, piece, bytes) || [...waiting].every(({ owner }) => owner === piece.owner)) return undefined
    return 'its organization used more than half of the memory while others waited'
  }
  /** Runs while an owner waits. */
  const look = (): void => {
    looking = undefined
    for (const { piece, filled } of leastFilled(pieces)) {
      if (waiting.size === 0) return
      const why = whyTaken(piece, filled)
      if (why === undefined) continue
      piece.holder!.take(refusal(why))
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
          // Others may have waited behind this one.
          admit()
        }
        const entry = {
          ...asked,
          go: () => {
            end()
            resolve(take(size, holder))
          },
        }
        const end = whenOver(signal, waitMs, () => leave(refusal(options.crowded)), leave)
        waiting.add(entry)
        // Its share may be available once earlier owners have theirs.
        admit()
        if (waiting.size > 0) lookLater()
      })
    },
  }
}

/** Calls `late` if it takes too long, and `leave` if `signal` is aborted, until the returned function is called. */
function whenOver(signal: AbortSignal, waitMs: number, late: () => void, leave: (error: unknown) => void): () => void {
  const stop = (): void => leave(signal.reason)
  const timer = setTimeout(late, waitMs)
  signal.addEventListener('abort', stop)
  return () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}
