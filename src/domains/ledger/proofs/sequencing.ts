// Ledgers whose rows are logged next, as this process knows them. They take turns by their numbers.
import { createSignal, type Signal } from '#lib/signal.ts'

export type Sequencing = {
  /** Behind which ledger it goes on. */
  after: number
  /** A run has left rows behind, and the next one need not wait. */
  left: Signal
  /** By which a run knows how long it takes. */
  monotonic: () => number
}

export function createSequencing(monotonic: () => number): Sequencing {
  return { after: 0, left: createSignal(), monotonic }
}
