// State of this process: for which logs it has enough answers of witnesses to sign them.
import { randomUUID } from 'node:crypto'

/** Delay before witnesses are asked about a log again, if too few have answered. */
const patienceMs = 60_000

/**
 * Answers of witnesses to this process. They do not depend on a clock, since a clock that was wrong once would mislead the next
 * process.
 */
export type Witnessing = {
  /** Id of this process. Answers of witnesses to another process do not count for this process. */
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
