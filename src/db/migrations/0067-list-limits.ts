import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0067-list-limits',
  up: (t) => [
    // A list in whose packages more is found than is kept of one list. Packages that only such lists have are held: what
    // is found in them gets less, never more.
    `ALTER TABLE component_lists ADD COLUMN over_limit ${t.bool} NOT NULL DEFAULT 0`,
    `ALTER TABLE components ADD COLUMN held ${t.bool} NOT NULL DEFAULT 0`,
    // True if the list is over its limit, for each package, so that packages without any other list are found at once.
    `ALTER TABLE list_components ADD COLUMN held ${t.bool} NOT NULL DEFAULT 0`,
    `DROP INDEX list_components_by_component`,
    `CREATE INDEX list_components_by_component ON list_components (component_id, held, list_id)`,
    // Since when, and until when, since reports of past days say so too.
    `CREATE TABLE list_limits (
       list_id    ${t.int} NOT NULL REFERENCES component_lists (id),
       from_time  ${t.text} NOT NULL,
       until_time ${t.text} NOT NULL DEFAULT '',
       PRIMARY KEY (list_id, from_time)
     )${t.withoutRowid}`,
    // Progress of an item that was interrupted to let others run.
    `ALTER TABLE match_queue ADD COLUMN progress ${t.text} NOT NULL DEFAULT ''`,
    // The lists of before are counted, which tells those that are over.
    `INSERT INTO match_queue (kind, place, item, due_time)
     SELECT 4, '', CAST(id AS TEXT), create_time FROM component_lists WHERE match_time <> ''
         ON CONFLICT (kind, place, item) DO NOTHING`,
  ],
}
