// Limit on the work of requests in one turn of the event loop. Requests that arrive together start in the same turn. A SQLite
// query runs synchronously, so a request with many queries would run to its end in one turn.
import { sharesNow } from './fair-queue.ts'
import { background, isAhead } from './shares.ts'
import { turns } from './turns.ts'

const turnMs = 10

export type LongTurns = {
  /**
   * Resolves in a later turn if this turn has taken 10 ms since the first call. A request whose sender has used less time than
   * others continues until 20 ms.
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

/** Instance that is shared by the whole process. */
export const longTurns: LongTurns = createLongTurns()
