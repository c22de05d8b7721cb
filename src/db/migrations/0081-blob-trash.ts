import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0081-blob-trash',
  up: (t) => [
    // Contents that no row names any more, until a backup of before can do without them.
    `CREATE TABLE blob_trash (
       location ${t.text} PRIMARY KEY,
       size     ${t.int} NOT NULL,
       due      ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX blob_trash_by_due ON blob_trash (due, location)`,
    // One that was not asked for by anybody looks through a part of what there is only.
    `ALTER TABLE collections ADD COLUMN scheduled ${t.bool} NOT NULL DEFAULT 0`,
  ],
}
