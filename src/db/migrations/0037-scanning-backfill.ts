import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0037-scanning-backfill',
  up: () => [
    // Lists of packages from before packages were rows; the item is the hash of the last list that was converted.
    `INSERT INTO match_queue (kind, place, item, due_time) VALUES (5, '', '', '1970-01-01T00:00:00.000Z')`,
  ],
}
