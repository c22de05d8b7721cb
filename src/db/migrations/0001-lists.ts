import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0001-lists',
  up: (t) => [
    `CREATE TABLE list_keys (
       list  ${t.text} NOT NULL,
       place ${t.text} NOT NULL,
       value ${t.text} NOT NULL,
       uid   ${t.text} NOT NULL,
       id    ${t.int} NOT NULL,
       PRIMARY KEY (list, place, value, uid)
     )${t.withoutRowid}`,
    `CREATE TABLE list_counts (
       kind  ${t.text} NOT NULL,
       place ${t.text} NOT NULL,
       shard ${t.int} NOT NULL,
       total ${t.int} NOT NULL,
       PRIMARY KEY (kind, place, shard)
     )${t.withoutRowid}`,
  ],
}
