import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0038-scanning-reports',
  up: (t) => [
    // When all packages of a list had been compared first; empty before.
    `ALTER TABLE component_lists ADD COLUMN match_time ${t.text} NOT NULL DEFAULT ''`,
    `UPDATE component_lists SET match_time = coalesce(
       (SELECT min(s.change_time) FROM list_severities s WHERE s.list_id = component_lists.id), '')`,
    // Each reading of a source to its end, since reports of past days tell how old what they knew was.
    `CREATE TABLE vulnerability_source_reads (
       source_id  ${t.int} NOT NULL REFERENCES vulnerability_sources (id),
       fetch_time ${t.text} NOT NULL,
       build_time ${t.text} NOT NULL,
       PRIMARY KEY (source_id, fetch_time)
     )${t.withoutRowid}`,
    `INSERT INTO vulnerability_source_reads (source_id, fetch_time, build_time)
     SELECT id, fetch_time, build_time FROM vulnerability_sources WHERE fetch_time <> ''`,
    // The same image in several repos.
    `CREATE INDEX image_contents_by_digest ON image_contents (digest, repo_id)`,
  ],
}
