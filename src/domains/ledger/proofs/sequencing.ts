// State of this process for taking turns between tag histories. They are logged in the order of their numbers.
import { createSignal, type Signal } from '#lib/signal.ts'

export type Sequencing = {
  /** Number of the last tag history that was logged. */
  after: number
  /** Signals that queued rows are left, so that the next run starts at once. */
  left: Signal
  /** Clock for the duration of a run. */
  monotonic: () => number
}

export function createSequencing(monotonic: () => number): Sequencing {
  return { after: 0, left: createSignal(), monotonic }
}
