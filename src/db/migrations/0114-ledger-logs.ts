import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0114-ledger-logs',
  up: (t) => [
    // Transparency logs of each organization, one after another. `state` is 1 for the current log, 2 for one that waits for
    // the operator, and 3 for an ended one. `secret` is encrypted; it makes the salts of the paths.
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
    // Keys that sign a log, by their names in policies; `private_key` is encrypted.
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
    // Openings that show the row of tag history of an entry. They are deleted with the ledger. The entry stays, and reveals
    // nothing without its opening.
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
    // Entries of the log, word for word. `chain` is `log` for entries about the log itself.
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
