import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0043-suppressions',
  up: (t) => [
    // Packages of distributions that installed a package of a language ecosystem, in any image.
    `CREATE TABLE owned_components (
       component_id ${t.int} NOT NULL REFERENCES components (id),
       owner_id     ${t.int} NOT NULL REFERENCES components (id),
       PRIMARY KEY (component_id, owner_id)
     )${t.withoutRowid}`,
    `CREATE INDEX owned_components_by_owner ON owned_components (owner_id, component_id)`,
    `INSERT INTO owned_components (component_id, owner_id)
     SELECT DISTINCT component_id, owner_id FROM list_components WHERE owner_id <> 0`,

    // Findings that do not count from one moment to another, because a source clears the distribution package that owns the
    // vulnerable one. Source and record are stored by name, since they may be deleted when a past day is reported.
    `CREATE TABLE suppressions (
       id         ${t.id},
       finding_id ${t.int} NOT NULL REFERENCES findings (id),
       owner_id   ${t.int} NOT NULL REFERENCES components (id),
       source     ${t.text} NOT NULL,
       record     ${t.text} NOT NULL,
       from_time  ${t.text} NOT NULL,
       until_time ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE UNIQUE INDEX suppressions_now ON suppressions (finding_id, owner_id) WHERE until_time = ''`,
    `CREATE INDEX suppressions_by_finding ON suppressions (finding_id, owner_id, id)`,
    // The lists of before.
    `INSERT INTO match_queue (kind, place, item, due_time)
     SELECT DISTINCT 3, '', CAST(c.id AS TEXT), c.create_time FROM component_lists c
      WHERE c.match_time <> '' AND EXISTS (SELECT 1 FROM list_components l WHERE l.list_id = c.id AND l.owner_id <> 0)`,
  ],
}
