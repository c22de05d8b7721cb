import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0098-mirrors-on-demand',
  // For how long what is here is served while the upstream does not answer: thirty days.
  up: (t) => [`ALTER TABLE follows ADD COLUMN stale_for_ms ${t.int} NOT NULL DEFAULT 2592000000`],
}
