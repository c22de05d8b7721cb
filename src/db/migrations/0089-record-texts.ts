import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0089-record-texts',
  up: (t) => [
    // Hash of a record without its texts: while it stays the same, so do the findings. Empty in earlier records.
    `ALTER TABLE vulnerability_records ADD COLUMN core_hash ${t.text} NOT NULL DEFAULT ''`,
    // The texts that a record had, and until when, since reports of past days have them.
    `CREATE TABLE vulnerability_record_texts (
       record_no    ${t.int} NOT NULL REFERENCES vulnerability_records (id) ON DELETE CASCADE,
       until_time   ${t.text} NOT NULL,
       summary      ${t.text} NOT NULL,
       "references" ${t.text} NOT NULL,
       PRIMARY KEY (record_no, until_time)
     )${t.withoutRowid}`,
  ],
}
