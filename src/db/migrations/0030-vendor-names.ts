import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0030-vendor-names',
  // By whose names a subscription gets its events; empty for ours.
  up: (t) => [`ALTER TABLE subscriptions ADD COLUMN vendor ${t.text} NOT NULL DEFAULT ''`],
}
