import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0110-follow-fetches',
  up: (t) => [
    // Manifests of repos that follow with what is still to be brought of them, and of what is about them: \`round\` counts the
    // times that all of it was here, and \`failures\` those in a row that it could not be brought.
    `CREATE TABLE follow_fetches (
       repo_uid     ${t.text} NOT NULL REFERENCES follows (repo_uid) ON DELETE CASCADE,
       organization ${t.text} NOT NULL,
       digest       ${t.text} NOT NULL,
       round        ${t.int} NOT NULL,
       failures     ${t.int} NOT NULL,
       problem      ${t.text} NOT NULL,
       due_time     ${t.text} NOT NULL,
       PRIMARY KEY (repo_uid, digest)
     )${t.withoutRowid}`,
    `CREATE INDEX follow_fetches_by_due_time ON follow_fetches (organization, due_time, repo_uid, digest)`,
    `CREATE INDEX follow_fetches_by_round ON follow_fetches (repo_uid, round)`,
    // Whom rules of who moves tags judge; empty for one that was set before it was noted.
    `ALTER TABLE follows ADD COLUMN setter ${t.text} NOT NULL DEFAULT ''`,
  ],
}
