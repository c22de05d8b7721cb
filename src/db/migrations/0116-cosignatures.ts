import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0116-cosignatures',
  up: (t) => [
    // The newest head of a log that enough witnesses have signed, with what they have signed; and when they were asked last.
    `CREATE TABLE ledger_cosigned (
       log_id     ${t.int} PRIMARY KEY REFERENCES ledger_logs (id),
       checkpoint ${t.text} NOT NULL,
       size       ${t.int} NOT NULL,
       asked_time ${t.text} NOT NULL
     )${t.strict}`,
    // Size of the log that each witness has seen.
    `CREATE TABLE ledger_cosigners (
       log_id ${t.int} NOT NULL REFERENCES ledger_logs (id),
       vkey   ${t.text} NOT NULL,
       size   ${t.int} NOT NULL,
       PRIMARY KEY (log_id, vkey)
     )${t.withoutRowid}`,
  ],
}
