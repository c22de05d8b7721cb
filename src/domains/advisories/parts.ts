import type { Remembered } from '#lib/caches/remembered.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type AdvisoriesParts = {
  /** Totals of searches that had to be counted row by row. */
  searchTotals: Remembered<number>
}
