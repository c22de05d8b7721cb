import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0152-expand-session-group-roles',
  up: (t) => [
    // Roles of the external groups that the provider sent at the sign-in, as a JSON list. Empty text if a build without this
    // column started the session.
    `ALTER TABLE sessions ADD COLUMN group_roles ${t.text} NOT NULL DEFAULT ''`,
  ],
}
