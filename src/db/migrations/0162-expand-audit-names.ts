import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0162-expand-audit-names',
  up: (t) => [
    // 'names' has the names of resources at the time of the entry, as JSON. 'former' is the resource before its deletion.
    `ALTER TABLE audit_log ADD COLUMN names ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE audit_log ADD COLUMN former ${t.text} NOT NULL DEFAULT ''`,
  ],
}
