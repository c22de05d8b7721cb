import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0160-expand-tag-restores',
  up: (t) => [
    // Reason of each restore in the tag history. Rows of the tag history itself have no reason. `repo_id` is the number of the
    // tag history.
    `CREATE TABLE tag_restores (
       repo_id ${t.int} NOT NULL REFERENCES ledgers (id) ON DELETE CASCADE,
       tag     ${t.text} NOT NULL,
       time    ${t.text} NOT NULL,
       reason  ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, tag, time)
     )${t.withoutRowid}`,
  ],
}
