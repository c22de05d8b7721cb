import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0132-expand-open-findings',
  up: (t) => [
    // Current number of public findings in a package of a counted list, and in a list; -1 if not counted.
    `ALTER TABLE components ADD COLUMN open_findings ${t.int} NOT NULL DEFAULT -1`,
    `ALTER TABLE component_lists ADD COLUMN open_findings ${t.int} NOT NULL DEFAULT -1`,
    // By how much that of a package has changed: the lists that have it follow in the order of their numbers, up to 'last_list' so far.
    `CREATE TABLE open_changes (
       id           ${t.id},
       component_id ${t.int} NOT NULL,
       delta        ${t.int} NOT NULL,
       last_list    ${t.int} NOT NULL DEFAULT 0
     )${t.strict}`,
    `CREATE UNIQUE INDEX open_changes_next ON open_changes (component_id) WHERE last_list = 0`,
    `CREATE INDEX open_changes_by_component ON open_changes (component_id, id)`,
    // The lists of before are counted once.
    `INSERT INTO match_queue (kind, place, item, due_time)
     SELECT 4, '', 'l' || CAST(id AS TEXT), create_time FROM component_lists WHERE match_time <> ''
         ON CONFLICT (kind, place, item) DO NOTHING`,
  ],
}
