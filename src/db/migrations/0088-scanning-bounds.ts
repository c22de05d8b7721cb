import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0088-scanning-bounds',
  up: (t) => [
    // Images of which it is known what they contain, but for some part.
    `CREATE INDEX image_contents_in_part ON image_contents (repo_id, digest) WHERE gaps <> '[]'`,
    // The components of a name a page at a time: no page reads what those before have read.
    `CREATE INDEX components_by_name ON components (name, id)`,
    `DROP INDEX components_by_origin`,
    `CREATE INDEX components_by_origin ON components (origin, id) WHERE origin <> name`,
    // Findings in a package that was not compared before are no change to report.
    `UPDATE findings SET told = 1
      WHERE told = 0 AND gone_time = '' AND component_id IN (SELECT id FROM components WHERE match_time = '')`,
    // Each package of a change from when on, since lists that were compared in between have it as well.
    `ALTER TABLE vulnerability_change_components ADD COLUMN change_time ${t.text} NOT NULL DEFAULT ''`,
    `UPDATE vulnerability_change_components
        SET change_time = (SELECT v.change_time FROM vulnerability_changes v WHERE v.id = change_id)`,
    // The organization's own advisories are queued under its place, and found by their name.
    `CREATE INDEX match_queue_by_item ON match_queue (kind, item)`,
  ],
}
