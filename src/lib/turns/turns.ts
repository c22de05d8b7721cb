// Turns of the event loop for what takes long. Whoever waits with a plain `setImmediate` runs in the next turn with all the
// others that wait: a hundred of three milliseconds each make one turn of three hundred, in which no request is answered.

/** How long those who wait run in one turn of the event loop, in milliseconds; one of them always does. */
const turnMs = 10

export type Turns = {
  /** Resolves in a later turn of the event loop, in the order in which it was asked for. */
  next(): Promise<void>
}

export function createTurns(monotonic: () => number = () => performance.now()): Turns {
  const waiting: (() => void)[] = []
  let isBegun = false
  /** How many of those that wait may run in this turn: who asks during it has a later one. */
  let left = 0
  let until = 0

  const begin = (): void => {
    left = waiting.length
    until = monotonic() + turnMs
    run()
  }
  const run = (): void => {
    left--
    waiting.shift()!()
    // Behind all that it does until it waits again: the tick that a microtask asks for comes after the other microtasks.
    queueMicrotask(() => process.nextTick(goOn))
  }
  const goOn = (): void => {
    if (left > 0 && monotonic() < until) run()
    else if (waiting.length > 0) setImmediate(begin)
    else isBegun = false
  }
  return {
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve)
        if (!isBegun) setImmediate(begin)
        isBegun = true
      }),
  }
}

/** Those of the process. */
export const turns: Turns = createTurns()
