import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0102-push-token-sessions',
  up: (t) => [
    // The session in which it was made, so that it can end with one that was stolen; empty for none.
    `ALTER TABLE push_tokens ADD COLUMN session_uid ${t.text} NOT NULL DEFAULT ''`,
    `CREATE INDEX push_tokens_by_session ON push_tokens (session_uid) WHERE session_uid <> ''`,
  ],
}
