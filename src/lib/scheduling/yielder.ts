// Pauses of a long loop, so that other work can run.
import { turns } from './turns.ts'

export type Yielder = {
  /** True if the loop has run for its time, and should pause. */
  isDue(): boolean
  /** Resolves in a later turn of the event loop. */
  next(): Promise<void>
  /** Starts the time again. Call it if the loop begins later than its yielder was created. */
  restart(): void
}

/** Time in milliseconds that a loop may run in one turn of the event loop. The last step may exceed it. */
const turnMs = 5

/** Creates the yielder of a loop, when the loop begins. Call before each step: `if (yielder.isDue()) await yielder.next()`. */
export function createYielder(
  monotonic: () => number = () => performance.now(),
  next: () => Promise<void> = () => turns.next(),
  ms: number = turnMs,
): Yielder {
  let began = monotonic()
  const restart = (): void => {
    began = monotonic()
  }
  return {
    isDue: () => monotonic() - began >= ms,
    async next() {
      await next()
      restart()
    },
    restart,
  }
}
