// Turns of the event loop for long work. After a plain `setImmediate`, all work that waits runs in the same next turn. A hundred
// pieces of three milliseconds each make one turn of 300 ms, in which no request is answered.
import { connecting } from './connecting.ts'
import { chargeBackground, FairQueue } from './fair-queue.ts'
import { isAheadInQueue, type Shares } from './shares.ts'

/** Time in milliseconds for which waiting work runs in one turn of the event loop; one piece always runs. */
const turnMs = 5

export type Turns = {
  /** Resolves in a later turn of the event loop. Callers that have used less time go first, and each one's work in its order. */
  next(): Promise<void>
}

type Waiting = { resume: () => void; number: number }

export function createTurns(monotonic: () => number = () => performance.now(), sharesNow?: () => Shares): Turns {
  const waiting = new FairQueue<Waiting>(sharesNow)
  let isBegun = false
  /** Work that asks during a turn gets a later turn. */
  let [asked, last] = [0, 0]
  let until = 0
  const isOfThisTurn = ({ number }: Waiting): boolean => number <= last

  /** A caller that has used less time than others does not wait for batches of writes, but only the first goes on in its turn. */
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
    // Behind all that it does until it waits again: the tick that a microtask asks for comes after the other microtasks.
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

/** A longer body is parsed in a turn of its own: many can be complete at once, and each takes milliseconds. */
export const turnBytes = 16 * 1024

/** The instance of this process. */
export const turns: Turns = createTurns()
