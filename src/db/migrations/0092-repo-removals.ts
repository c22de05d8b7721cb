import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0092-repo-removals',
  up: (t) => [
    // Deleted repos that are too large for one transaction and are removed in slices. The row of the repo stays until the
    // end, without a ledger, under a uid and a name that cannot be requested. This table has the original ones.
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
