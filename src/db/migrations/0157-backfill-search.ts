import type { Migration } from '../migrate.ts'
import { fillSearch } from '../search-fill.ts'

/** Queues existing names for the search index. */
export const migration: Migration = {
  id: '0157-backfill-search',
  batch: (tx) => fillSearch(tx, 1000),
}
