import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0027-syncs',
  up: (t) => [
    // Source that the repo is copied from, as JSON; empty for most repos.
    `ALTER TABLE repos ADD COLUMN sync_config ${t.text} NOT NULL DEFAULT ''`,
    // State of the copies. `setter` is the identity that they act as; `due_time` is empty if there is nothing more to do.
    `CREATE TABLE repo_syncs (
       repo_uid        ${t.text} PRIMARY KEY REFERENCES repos (uid) ON DELETE CASCADE,
       source          ${t.text} NOT NULL,
       setter          ${t.text} NOT NULL,
       operator        ${t.bool} NOT NULL,
       expiration_time ${t.text} NOT NULL,
       status          ${t.int} NOT NULL,
       status_time     ${t.text} NOT NULL,
       due_time        ${t.text} NOT NULL,
       cursor          ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX repo_syncs_by_source ON repo_syncs (source, expiration_time)`,
    `CREATE INDEX repo_syncs_by_due_time ON repo_syncs (due_time, repo_uid) WHERE due_time <> ''`,
    // Signatures and the like, which come after what they are about.
    `CREATE INDEX manifests_by_referrer_time ON manifests (repo_id, create_time, digest) WHERE subject <> ''`,
    // Why the discovery document could not be read, and since when, as JSON; empty while it can be.
    `ALTER TABLE identity_providers ADD COLUMN discovery ${t.text} NOT NULL DEFAULT ''`,
  ],
}
