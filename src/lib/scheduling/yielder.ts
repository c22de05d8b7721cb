// Pauses of a long loop, by the time since the last one.
import { turns } from './turns.ts'

export type Yielder = {
  /** True if other work has waited long enough. */
  isDue(): boolean
  /** Resolves in a later turn of the event loop. */
  next(): Promise<void>
  /** To be called when a loop begins that does not begin with the yielder. */
  restart(): void
}

/** Time in milliseconds for which a loop runs in one turn of the event loop. One step of the loop may come on top. */
const turnMs = 5

/** To be created when the loop begins; before each step: `if (yielder.isDue()) await yielder.next()`. */
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
