// Turns of the event loop for what takes long. Whoever waits with a plain `setImmediate` runs in the next turn with all the
// others that wait: a hundred of three milliseconds each make one turn of three hundred, in which no request is answered.
import { connecting } from './connecting.ts'
import { chargeBackground, FairQueue } from './fair-queue.ts'
import { isAheadInQueue, type Shares } from './shares.ts'

/** How long those who wait run in one turn of the event loop, in milliseconds; one of them always does. */
const turnMs = 5

export type Turns = {
  /** Resolves in a later turn of the event loop. Callers that have used less time go first, and each one's work in its order. */
  next(): Promise<void>
}

type Waiting = { resume: () => void; number: number }

export function createTurns(monotonic: () => number = () => performance.now(), sharesNow?: () => Shares): Turns {
  const waiting = new FairQueue<Waiting>(sharesNow)
  let isBegun = false
  /** Who asks during a turn has a later one. */
  let [asked, last] = [0, 0]
  let until = 0
  const isOfThisTurn = ({ number }: Waiting): boolean => number <= last

  /** A caller who has used less time than others waits for nobody's batch of writes, but only the first goes on in its turn. */
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

/** A longer body is looked at in a turn of its own: many can be complete at once, and each takes milliseconds. */
export const turnBytes = 16 * 1024

/** Those of the process. */
export const turns: Turns = createTurns()
