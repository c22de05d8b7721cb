import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0114-ledger-logs',
  up: (t) => [
    // The logs that prove the ledger, one after the other for each organisation. `state` is 1 for the one that is written, 2 for
    // one that waits for the operator, and 3 for one that has ended. `secret` is sealed; it makes the salts of the paths.
    `CREATE TABLE ledger_logs (
       id              ${t.id},
       org_uid         ${t.text} NOT NULL,
       generation      ${t.int} NOT NULL,
       origin          ${t.text} NOT NULL UNIQUE,
       secret          ${t.bytes} NOT NULL,
       state           ${t.int} NOT NULL,
       size            ${t.int} NOT NULL,
       checkpoint      ${t.text} NOT NULL,
       checkpoint_size ${t.int} NOT NULL,
       checkpoint_time ${t.text} NOT NULL,
       UNIQUE (org_uid, generation)
     )${t.strict}`,
    `CREATE INDEX ledger_logs_unsigned ON ledger_logs (id) WHERE checkpoint_size < size`,
    // What signs a log, by what policies call it; `private_key` is sealed.
    `CREATE TABLE ledger_log_keys (
       vkey        ${t.text} PRIMARY KEY,
       log_id      ${t.int} NOT NULL REFERENCES ledger_logs (id),
       private_key ${t.bytes} NOT NULL,
       create_time ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX ledger_log_keys_by_log ON ledger_log_keys (log_id, create_time)`,
    // Rows of the ledger that are not in a log yet, each written with its row: where the repo was, and the kind of the entry.
    `CREATE TABLE ledger_pending (
       ledger_id ${t.int} NOT NULL REFERENCES ledgers (id) ON DELETE CASCADE,
       tag       ${t.text} NOT NULL,
       time      ${t.text} NOT NULL,
       path      ${t.text} NOT NULL,
       kind      ${t.int} NOT NULL,
       PRIMARY KEY (ledger_id, tag, time)
     )${t.withoutRowid}`,
    // Ledgers whose rows of before are still to be added: those behind this row, in the order of their key.
    `CREATE TABLE ledger_backfills (
       ledger_id  ${t.int} PRIMARY KEY REFERENCES ledgers (id) ON DELETE CASCADE,
       after_tag  ${t.text} NOT NULL,
       after_time ${t.text} NOT NULL
     )${t.strict}`,
    `INSERT INTO ledger_backfills (ledger_id, after_tag, after_time) SELECT id, '', '' FROM ledgers`,
    // What shows which row an entry stands for. It goes with the ledger; the entry, which tells nothing without it, stays.
    `CREATE TABLE ledger_openings (
       ledger_id ${t.int} NOT NULL REFERENCES ledgers (id) ON DELETE CASCADE,
       tag       ${t.text} NOT NULL,
       time      ${t.text} NOT NULL,
       path      ${t.text} NOT NULL,
       nonce     ${t.text} NOT NULL,
       log_id    ${t.int} NOT NULL,
       idx       ${t.int} NOT NULL,
       PRIMARY KEY (ledger_id, tag, time)
     )${t.withoutRowid}`,
    `CREATE UNIQUE INDEX ledger_openings_by_entry ON ledger_openings (log_id, idx)`,
    // What was logged, word for word. `chain` is `log` for what is about the log itself.
    `CREATE TABLE ledger_entries (
       log_id ${t.int} NOT NULL,
       idx    ${t.int} NOT NULL,
       chain  ${t.text} NOT NULL,
       seq    ${t.int} NOT NULL,
       entry  ${t.text} NOT NULL,
       PRIMARY KEY (log_id, idx)
     )${t.withoutRowid}`,
    `CREATE UNIQUE INDEX ledger_entries_by_chain ON ledger_entries (log_id, chain, seq)`,
    // Tiles as wide as they are; a hash that is there never changes.
    `CREATE TABLE ledger_tiles (
       log_id ${t.int} NOT NULL,
       level  ${t.int} NOT NULL,
       idx    ${t.int} NOT NULL,
       hashes ${t.bytes} NOT NULL,
       PRIMARY KEY (log_id, level, idx)
     )${t.withoutRowid}`,
  ],
}
