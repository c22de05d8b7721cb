import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0109-follow-checks',
  // When somebody last asked for a look at once; empty before the first time.
  up: (t) => [`ALTER TABLE follow_states ADD COLUMN check_time ${t.text} NOT NULL DEFAULT ''`],
}
