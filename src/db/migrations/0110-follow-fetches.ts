import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0110-follow-fetches',
  up: (t) => [
    // Manifests of mirrored repos whose content, or referrers, still have to be fetched. `round` counts complete fetches, and
    // `failures` consecutive failures.
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
    // Identity that tag protection rules check; empty for mirrors from before it was stored.
    `ALTER TABLE follows ADD COLUMN setter ${t.text} NOT NULL DEFAULT ''`,
  ],
}
