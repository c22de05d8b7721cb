import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0111-law-versions',
  up: (t) => [
    // Version that grows with each change of the retention policies of an organization, so that caches notice the change.
    `CREATE TABLE law_versions (
       organization ${t.text} PRIMARY KEY REFERENCES groups (uid) ON DELETE CASCADE,
       version      ${t.int} NOT NULL
     )${t.withoutRowid}`,
    `INSERT INTO law_versions (organization, version)
     SELECT uid, 1 FROM groups
      WHERE length(uid) = 40 AND uid IN (
        SELECT substr(scope_uid, 1, 40) FROM retention_rules UNION SELECT substr(scope_uid, 1, 40) FROM tag_rules
         UNION SELECT substr(scope_uid, 1, 40) FROM holds UNION SELECT substr(scope_uid, 1, 40) FROM quarantined)`,
  ],
}
