import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0028-advisory-aliases',
  // Version 1 sorts advisories by the ids of the vulnerability: the list of them, with spaces for what is between two.
  up: (t) => [
    `ALTER TABLE advisories ADD COLUMN alias_order ${t.text} NOT NULL DEFAULT ''`,
    `UPDATE advisories
        SET alias_order = substr(replace(substr(aliases, 3, length(aliases) - 4), '","', ' '), 1, 255)
      WHERE aliases <> '[]'`,
    // From the same places as in every other order.
    `INSERT INTO list_keys (list, place, value, uid, id)
     SELECT 'advisories.alias_order', k.place, a.alias_order, k.uid, k.id
       FROM list_keys k JOIN advisories a ON a.id = k.id
      WHERE k.list = 'advisories.advisory_id'`,
  ],
}
