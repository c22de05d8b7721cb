// Turns of the event loop for long work. With plain `setImmediate`, all waiting work would run in the same turn. A hundred pieces
// of three milliseconds would then make one turn of 300 ms, in which no request is answered.
import { connecting } from './connecting.ts'
import { chargeBackground, FairQueue } from './fair-queue.ts'
import { isAheadInQueue, type Shares } from './shares.ts'

/** Time in milliseconds for waiting work in one turn of the event loop. At least one piece runs in each turn. */
const turnMs = 5

export type TurnScheduler = {
  /**
   * Resolves in a later turn of the event loop. Callers that have used less time go first. The work of one caller keeps its
   * order.
   */
  next(): Promise<void>
}

type Waiting = { resume: () => void; number: number }

export function createTurns(
  monotonic: () => number = () => performance.now(),
  sharesNow?: () => Shares,
): TurnScheduler {
  const waiting = new FairQueue<Waiting>(sharesNow)
  let isBegun = false
  /**
   * Numbers of the last piece that waits, and of the last piece for this turn. Pieces that arrive during a turn wait for another
   * one.
   */
  let [asked, last] = [0, 0]
  let until = 0
  const isOfThisTurn = ({ number }: Waiting): boolean => number <= last

  /** True if the next caller has used less time than others. Its first piece then runs even in a turn with other long work. */
  const isLight = (): boolean => {
    const entry = waiting.next()
    return entry !== undefined && isAheadInQueue(entry.shares)
  }
  const begin = (isOnlyLight: boolean): void => {
    last = asked
    until = isOnlyLight ? -Infinity : monotonic() + turnMs
    run()
  }
  const run = (): void => {
    const entry = waiting.take(isOfThisTurn)
    if (!entry) return void proceed(false)
    const began = monotonic()
    entry.item.resume()
    // Measures after the piece has run until it waits again. The tick runs after all microtasks of the piece.
    queueMicrotask(() =>
      process.nextTick(() => {
        const now = monotonic()
        chargeBackground(entry, now - began)
        proceed(now < until)
      }),
    )
  }
  const proceed = (hasTime: boolean): void => {
    if (hasTime) run()
    else if (waiting.length > 0) connecting.behind(begin, isLight)
    else isBegun = false
  }
  return {
    next: () =>
      new Promise((resume) => {
        waiting.push({ resume, number: ++asked })
        if (!isBegun) connecting.behind(begin, isLight)
        isBegun = true
      }),
  }
}

/**
 * Size in bytes above which a body is parsed in a turn of its own. Many bodies can be complete at once, and parsing each takes
 * milliseconds.
 */
export const turnBytes = 16 * 1024

/** Instance that is shared by the whole process. */
export const turns: TurnScheduler = createTurns()
