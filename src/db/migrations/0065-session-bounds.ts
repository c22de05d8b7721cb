import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0065-session-bounds',
  // JSON: the scopes and the capabilities that a program was let in for; empty where nothing bounds it.
  up: (t) => [`ALTER TABLE sessions ADD COLUMN bound ${t.text} NOT NULL DEFAULT ''`],
}
