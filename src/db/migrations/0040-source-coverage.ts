import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0040-source-coverage',
  up: (t) => [
    // Ecosystems that a source had when it was read, and its error if it could not be read, since reports of past days show
    // these gaps. A row without ecosystems is a failed read.
    `ALTER TABLE vulnerability_source_reads ADD COLUMN ecosystems ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE vulnerability_source_reads ADD COLUMN error ${t.text} NOT NULL DEFAULT ''`,
    `UPDATE vulnerability_source_reads SET ecosystems =
       (SELECT s.ecosystems FROM vulnerability_sources s WHERE s.id = vulnerability_source_reads.source_id)`,
    `INSERT INTO vulnerability_source_reads (source_id, fetch_time, build_time, error)
     SELECT id, try_time, '', error FROM vulnerability_sources WHERE error <> '' AND try_time > fetch_time`,
  ],
}
