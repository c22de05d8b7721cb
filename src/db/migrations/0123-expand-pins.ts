import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0123-expand-pins',
  up: (t) => [
    // When each caller has pulled a manifest last with GET, on days whose callers are one row of digest_usage by now. The
    // caller is `*` for those of a day that had no row of their own before.
    `CREATE TABLE digest_last_pulls (
       repo_id   ${t.int} NOT NULL,
       digest    ${t.text} NOT NULL,
       caller    ${t.text} NOT NULL,
       last_time ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, digest, caller)
     )${t.withoutRowid}`,
    // Earlier rows for other callers, who are unknown by now.
    `INSERT INTO digest_last_pulls (repo_id, digest, caller, last_time)
     SELECT repo_id, digest, caller, max(last_time) FROM digest_usage WHERE caller = '*' AND gets > 0
      GROUP BY repo_id, digest, caller`,
    // Number of manifests that exceed the limit of one read.
    `ALTER TABLE retention_plans ADD COLUMN undecided ${t.int} NOT NULL DEFAULT 0`,
    // Platforms whose images of an index are prefetched, as JSON; all if it is empty.
    `ALTER TABLE follows ADD COLUMN platforms ${t.text} NOT NULL DEFAULT '[]'`,
  ],
}
