import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0092-repo-removals',
  up: (t) => [
    // Repos that were deleted and had so much that it goes in slices. The row of the repo is there until all of it is gone, without
    // a ledger, and under a uid and a name that nobody can ask for; here are the ones that it had.
    `CREATE TABLE repo_removals (
       id          ${t.int} PRIMARY KEY REFERENCES repos (id),
       uid         ${t.text} NOT NULL UNIQUE,
       ledger_id   ${t.int} NOT NULL REFERENCES ledgers (id),
       actor       ${t.text} NOT NULL,
       delete_time ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX repo_removals_by_ledger ON repo_removals (ledger_id)`,
  ],
}
