import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0128-expand-made-repos',
  // True if pulls of missing paths create repositories that mirror the upstream.
  up: (t) => [`ALTER TABLE upstreams ADD COLUMN make_repos ${t.int} NOT NULL DEFAULT 0`],
}
