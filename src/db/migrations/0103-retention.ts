import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0103-retention',
  up: (t) => [
    // Retention policies and tag protection rules, at and below a group or a repo. `says` is JSON.
    ...['retention_rules', 'tag_rules'].flatMap((table) => [
      `CREATE TABLE ${table} (
         id          ${t.id},
         uid         ${t.text} NOT NULL UNIQUE,
         group_uid   ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
         scope_uid   ${t.text} NOT NULL,
         says        ${t.text} NOT NULL,
         create_time ${t.text} NOT NULL,
         update_time ${t.text} NOT NULL
       )${t.strict}`,
      `CREATE INDEX ${table}_by_group ON ${table} (group_uid)`,
    ]),
    // Kept without a date, and not to be pulled. A row never changes, but to say when it was released; `tags` is a JSON list,
    // empty for what is quarantined.
    ...['holds', 'quarantined'].flatMap((table) => [
      `CREATE TABLE ${table} (
         id           ${t.id},
         uid          ${t.text} NOT NULL UNIQUE,
         group_uid    ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
         scope_uid    ${t.text} NOT NULL,
         digest       ${t.text} NOT NULL,
         tags         ${t.text} NOT NULL,
         reason       ${t.text} NOT NULL,
         actor        ${t.text} NOT NULL,
         create_time  ${t.text} NOT NULL,
         release_time ${t.text} NOT NULL DEFAULT '',
         released_by  ${t.text} NOT NULL DEFAULT ''
       )${t.strict}`,
      `CREATE INDEX ${table}_by_group ON ${table} (group_uid)`,
      `CREATE INDEX ${table}_live ON ${table} (uid) WHERE release_time = ''`,
    ]),
    // Until when a manifest is kept at least, and the rule that said so. A date only ever moves later.
    `CREATE TABLE digest_promises (
       repo_id    ${t.int} NOT NULL,
       digest     ${t.text} NOT NULL,
       until_time ${t.text} NOT NULL,
       rule       ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, digest),
       FOREIGN KEY (repo_id, digest) REFERENCES manifests (repo_id, digest) ON DELETE CASCADE
     )${t.withoutRowid}`,
    `CREATE INDEX digest_promises_by_time ON digest_promises (repo_id, until_time)`,
  ],
}
