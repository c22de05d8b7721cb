// Budget for the memory of one purpose, such as uploads. Each piece is reserved as a whole before it is filled. So a full piece
// can always be sent, and no owner blocks another one forever. While others wait, one owner keeps at most half. It loses pieces
// above its half that are not full yet, and pieces that fill slowly.
export type Memory = {
  /**
   * Reserves a piece, after a wait if needed. Rejects with an error of `refusal` if the wait is too long, and if `signal` is
   * aborted.
   */
  reserve(bytes: number, signal: AbortSignal, by?: Holder): Promise<Reserved>
  /** Number of bytes that are reserved now. */
  held(): number
}

export type Holder = {
  /** Owner of the piece. Empty if the piece counts toward nobody's share. */
  owner: string
  /** Bytes of the piece that have arrived. `undefined` once the piece is full. */
  filled(): number | undefined
  /** Called when the piece is taken away for other owners. The caller must not use the piece any more. */
  take(why: Error): void
}

export type Reserved = {
  /** Frees the piece. Further calls do nothing. */
  free(): void
}

export type MemoryOptions = {
  waitMs: number
  /** Creates the error for a piece that waited too long, or that was taken away. */
  refusal(why: string): Error
  /** Reason in the error of a piece that waited too long. */
  crowded: string
  /** Milliseconds after which a piece that is not full may be taken away, if it is slow or its owner has more than half. */
  slowMs?: number
  /** Bytes per second below which a piece is slow. */
  leastRate?: number
  monotonic?: () => number
}

type Piece = { bytes: number; owner: string; since: number; holder: Holder | undefined; free(): void }
type Waiter = { bytes: number; owner: string; go(): void }

const defaultSlowMs = 10_000
const defaultRate = 64 * 1024

/** Pieces that are not full, the emptiest first, since taking them away loses the least data. */
function leastFilled(pieces: Iterable<Piece>): { piece: Piece; filled: number }[] {
  const filling = [...pieces].flatMap((piece) => {
    const filled = piece.holder?.filled()
    return filled === undefined ? [] : [{ piece, filled }]
  })
  return filling.sort((a, b) => a.filled - b.filled)
}

function bytesOwnedBy(pieces: Iterable<Piece>, owner: string): number {
  let sum = 0
  for (const piece of pieces) if (piece.owner === owner) sum += piece.bytes
  return sum
}

/** True if the owner stays within its share with the piece that it waits for. `bytes` is the size of the budget. */
function hasShare(pieces: Iterable<Piece>, { bytes: more, owner }: Waiter, bytes: number): boolean {
  if (owner === '') return true
  const has = bytesOwnedBy(pieces, owner)
  return has === 0 || has + more <= bytes / 2
}

/** True if the owner of a piece has more than half of `bytes`, and has other pieces too. */
function hasMore(pieces: Iterable<Piece>, { bytes: one, owner }: Piece, bytes: number): boolean {
  const has = owner === '' ? 0 : bytesOwnedBy(pieces, owner)
  return has > bytes / 2 && has > one
}

/** Creates a budget of this size. A piece that is larger than the budget is accepted if no other piece is reserved. */
export function createMemory(bytes: number, options: MemoryOptions): Memory {
  const { waitMs, refusal, slowMs = defaultSlowMs, leastRate = defaultRate } = options
  const { monotonic = () => performance.now() } = options
  let held = 0
  const pieces = new Set<Piece>()
  const waiting = new Set<Waiter>()
  let looking: NodeJS.Timeout | undefined

  const fits = (more: number): boolean => held === 0 || held + more <= bytes
  /** Next waiting piece. Owners that already have their share come last. */
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
  /** Takes pieces away while owners wait, and checks again later. */
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
          // Smaller pieces may have waited behind this one.
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
        // This owner may have its share left even if owners before it have not.
        admit()
        if (waiting.size > 0) lookLater()
      })
    },
  }
}

/** Calls `late` after `waitMs`, and `leave` if `signal` is aborted. Neither is called after the returned function was called. */
function whenOver(signal: AbortSignal, waitMs: number, late: () => void, leave: (error: unknown) => void): () => void {
  const stop = (): void => leave(signal.reason)
  const timer = setTimeout(late, waitMs)
  signal.addEventListener('abort', stop)
  return () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}
