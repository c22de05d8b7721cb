import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0018-consent',
  up: (t) => [
    // Earlier bindings count as accepted, and their creators are unknown.
    `ALTER TABLE role_bindings ADD COLUMN accepted ${t.bool} NOT NULL DEFAULT 1`,
    `ALTER TABLE role_bindings ADD COLUMN created_by ${t.text} NOT NULL DEFAULT ''`,
    `CREATE INDEX role_bindings_by_identity_accepted ON role_bindings (identity_uid, accepted, uid)`,
    `ALTER TABLE group_invites ADD COLUMN created_by ${t.text} NOT NULL DEFAULT ''`,
  ],
}
