import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0091-backups',
  up: (t) => [
    // Backups that are being made: until then, or until the row is gone, nothing is removed from the store of blobs.
    `CREATE TABLE backups (
       id    ${t.text} PRIMARY KEY,
       until ${t.text} NOT NULL
     )${t.withoutRowid}`,
  ],
}
