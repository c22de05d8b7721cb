// Witnesses that this process has asked about a log before it signs.
import { randomUUID } from 'node:crypto'

/** Delay before a log is asked about again after too few answers. */
const patienceMs = 60_000

/**
 * Answers of witnesses to this process. No clock is involved, since a clock that was wrong once would mislead the next process.
 */
export type Witnessing = {
  /** Id of this process. Answers to another process do not count for this one. */
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
