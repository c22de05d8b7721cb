// Witnesses that this process has asked about a log before it signs.
import { randomUUID } from 'node:crypto'

/** How long after it was asked about a log is asked about again, where too few have answered. */
const patienceMs = 60_000

/** What this process knows of whom it has asked: no clock says it, since one that was wrong once would mislead the next process. */
export type Witnessing = {
  /** Those who have answered another process have not told this one what they have seen. */
  process: string
  isDue(log: number): boolean
  note(log: number, isSure: boolean): void
}

export function createWitnessing(monotonic: () => number): Witnessing {
  const asked = new Map<number, number>()
  return {
    process: randomUUID(),
    isDue(log) {
      const at = asked.get(log)
      return at === undefined || monotonic() - at >= patienceMs
    },
    note(log, isSure) {
      if (isSure) asked.delete(log)
      else asked.set(log, monotonic())
    },
  }
}
