// Limit on the work of requests in one turn of the event loop. Requests that arrive at once begin one after the other in the same
// turn. A query of SQLite is done when it is called, so a chain of queries would run to its end before the event loop turns.
import { sharesNow } from './fair-queue.ts'
import { background, isAhead } from './shares.ts'
import { turns } from './turns.ts'

const turnMs = 10

export type LongTurns = {
  /**
   * Resolves in a later turn if this one has taken 10 ms since the first call. A request whose sender has used less time than
   * others waits only after 20 ms.
   */
  letOthersRun(): Promise<void> | undefined
}

export function createLongTurns(monotonic: () => number = () => performance.now()): LongTurns {
  let began: number | undefined
  const turned = (): void => {
    began = undefined
  }
  return {
    letOthersRun() {
      if (began === undefined) {
        began = monotonic()
        setImmediate(turned)
        return undefined
      }
      const elapsed = monotonic() - began
      if (elapsed < turnMs) return undefined
      const shares = sharesNow()
      const goesOn = elapsed < 2 * turnMs && shares !== background && isAhead(shares)
      return goesOn ? undefined : turns.next()
    },
  }
}

/** The instance of this process. */
export const longTurns: LongTurns = createLongTurns()
