// State of this process for the order in which tag histories are logged. They take turns by number.
import { createSignal, type Signal } from '#lib/signal.ts'

export type Sequencing = {
  /** Number of the last tag history that was logged. */
  after: number
  /** Signals that rows are left, so that the next run need not wait. */
  left: Signal
  /** Clock that measures the duration of a run. */
  monotonic: () => number
}

export function createSequencing(monotonic: () => number): Sequencing {
  return { after: 0, left: createSignal(), monotonic }
}
