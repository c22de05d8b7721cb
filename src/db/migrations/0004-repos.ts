import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0004-repos',
  up: (t) => [
    `CREATE TABLE repos (
       id             ${t.id},
       uid            ${t.text} NOT NULL UNIQUE,
       parent_uid     ${t.text} NOT NULL REFERENCES groups (uid),
       name           ${t.text} NOT NULL,
       description    ${t.text} NOT NULL DEFAULT '',
       catalogue      ${t.text} NOT NULL DEFAULT '',
       create_time    ${t.text} NOT NULL,
       update_time    ${t.text} NOT NULL,
       UNIQUE (parent_uid, name)
     )${t.strict}`,
    `CREATE INDEX repos_by_parent ON repos (parent_uid, uid)`,
    `CREATE INDEX repos_by_name ON repos (name, uid)`,
    `CREATE TABLE repo_readmes (
       repo_uid    ${t.text} PRIMARY KEY REFERENCES repos (uid),
       content     ${t.text} NOT NULL,
       update_time ${t.text} NOT NULL
     )${t.strict}`,
  ],
}
