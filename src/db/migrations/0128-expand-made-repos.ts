import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0128-expand-made-repos',
  // Whether pulls of paths that are not here make repositories that follow the upstream.
  up: (t) => [`ALTER TABLE upstreams ADD COLUMN make_repos ${t.int} NOT NULL DEFAULT 0`],
}
