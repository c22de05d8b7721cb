import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0035-session-external-ids',
  up: (t) => [
    // Name by which a provisioning provider identifies the person of a session; empty if the provider does not provision.
    `ALTER TABLE sessions ADD COLUMN external_id ${t.text} NOT NULL DEFAULT ''`,
    `CREATE INDEX sessions_by_external_id ON sessions (provider, external_id)`,
  ],
}
