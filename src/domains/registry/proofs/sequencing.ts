// Whose rows of the ledger are logged next, as this process knows it: ledgers take turns by their numbers, round and round.
import { createSignal, type Signal } from '#lib/signal.ts'

export type Sequencing = {
  /** Behind which ledger it goes on. */
  after: number
  /** A run has left rows behind, and the next one need not wait. */
  left: Signal
}

export function createSequencing(): Sequencing {
  return { after: 0, left: createSignal() }
}
