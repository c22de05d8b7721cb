import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0073-spoken-ecosystems',
  up: (t) => [
    // Ecosystems of the records of a source, and the last read that found each.
    `CREATE TABLE vulnerability_source_ecosystems (
       source_id  ${t.int} NOT NULL REFERENCES vulnerability_sources (id),
       ecosystem  ${t.text} NOT NULL,
       generation ${t.int} NOT NULL,
       PRIMARY KEY (source_id, ecosystem)
     )${t.withoutRowid}`,
    `INSERT INTO vulnerability_source_ecosystems (source_id, ecosystem, generation)
     SELECT r.source_id, a.ecosystem, max(r.generation)
       FROM affected_packages a JOIN vulnerability_records r ON r.id = a.record_no
      WHERE a.until_time = '' GROUP BY r.source_id, a.ecosystem`,
  ],
}
