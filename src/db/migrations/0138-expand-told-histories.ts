import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0138-expand-told-histories',
  up: (t) => [
    // Upstream repositories that have sent their tag history, by their addresses at that time. `ledger_id` is the ledger of
    // the repo here, and `moves` the number of stored assignments.
    `CREATE TABLE history_tellers (
       id           ${t.id},
       ledger_id    ${t.int} NOT NULL REFERENCES ledgers (id) ON DELETE CASCADE,
       upstream_uid ${t.text} NOT NULL,
       origin       ${t.text} NOT NULL,
       path         ${t.text} NOT NULL,
       moves        ${t.int} NOT NULL
     )${t.strict}`,
    `CREATE UNIQUE INDEX history_tellers_by_address ON history_tellers (ledger_id, origin, path)`,
    // Tag assignments that upstreams have reported. They are not part of the server's own tag history. Rows never change;
    // `told_time` is when they were received.
    `CREATE TABLE told_moves (
       ledger_id       ${t.int} NOT NULL,
       tag             ${t.text} NOT NULL,
       time            ${t.text} NOT NULL,
       teller_id       ${t.int} NOT NULL REFERENCES history_tellers (id) ON DELETE CASCADE,
       event           ${t.int} NOT NULL,
       digest          ${t.text} NOT NULL,
       checked_before  ${t.text} NOT NULL,
       told_time       ${t.text} NOT NULL,
       PRIMARY KEY (ledger_id, tag, time, teller_id)
     )${t.withoutRowid}`,
    `CREATE INDEX told_moves_by_time ON told_moves (ledger_id, time, tag, teller_id)`,
    `CREATE INDEX told_moves_by_digest ON told_moves (ledger_id, digest, time, tag, teller_id)`,
    `CREATE INDEX told_moves_by_teller ON told_moves (teller_id)`,
    // The tags whose past is still to be asked for.
    `CREATE TABLE follow_histories (
       repo_uid     ${t.text} NOT NULL REFERENCES follows (repo_uid) ON DELETE CASCADE,
       organization ${t.text} NOT NULL,
       tag          ${t.text} NOT NULL,
       failures     ${t.int} NOT NULL,
       problem      ${t.text} NOT NULL,
       due_time     ${t.text} NOT NULL,
       PRIMARY KEY (repo_uid, tag)
     )${t.withoutRowid}`,
    `CREATE INDEX follow_histories_by_due_time ON follow_histories (organization, due_time, repo_uid, tag)`,
    // Protocol with which an upstream sends tag history, 0 if unknown, and the time until which it is not asked again.
    `ALTER TABLE follow_states ADD COLUMN history_api ${t.int} NOT NULL DEFAULT 0`,
    `ALTER TABLE follow_states ADD COLUMN history_due ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE follow_states ADD COLUMN history_problem ${t.text} NOT NULL DEFAULT ''`,
  ],
}
