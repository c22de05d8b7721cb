import type { Remembered } from '#lib/caches/lru-cache.ts'

/** Caches of the advisories domain, which live as long as the process. */
export type AdvisoriesParts = {
  /** Totals of searches that had to be counted row by row. */
  searchTotals: Remembered<number>
}
