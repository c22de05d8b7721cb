import type { Migration } from '../migrate.ts'
import type { Words } from '../words.ts'

// Tag history outlives its repo. From here on, `repo_id` in `tag_history` is the number of a ledger, which is that of the
// first repo that wrote to it. So no row changes, only the table that the column refers to.
export const migration: Migration = {
  id: '0014-ledger',
  up: (t) => [
    // Every number that a repo was ever given; the engine gives none twice, not even one whose row is gone.
    `CREATE TABLE repo_ids (id ${t.counter})${t.strict}`,
    `INSERT INTO repo_ids (id) SELECT id FROM repos`,
    ...t.counterAfter('repo_ids'),

    // A ledger belongs to a name in the group of this uid, whatever the group is called, and whether it is still there.
    `CREATE TABLE ledgers (
       id        ${t.int} PRIMARY KEY,
       group_uid ${t.text} NOT NULL,
       name      ${t.text} NOT NULL,
       UNIQUE (group_uid, name)
     )${t.strict}`,
    `INSERT INTO ledgers (id, group_uid, name) SELECT id, parent_uid, name FROM repos`,
    // Every new row has one; neither engine adds such a column NOT NULL to a table with rows.
    `ALTER TABLE repos ADD COLUMN ledger_id ${t.int} REFERENCES ledgers (id)`,
    `UPDATE repos SET ledger_id = id`,
    `CREATE UNIQUE INDEX repos_by_ledger ON repos (ledger_id)`,

    // By the number and the uid that the repo had; a ledger has one for each time that its repo was deleted.
    `CREATE TABLE deleted_repos (
       id          ${t.int} PRIMARY KEY,
       uid         ${t.text} NOT NULL UNIQUE,
       parent_uid  ${t.text} NOT NULL,
       ledger_id   ${t.int} NOT NULL REFERENCES ledgers (id),
       path        ${t.text} NOT NULL,
       actor       ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL,
       delete_time ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX deleted_repos_by_parent ON deleted_repos (parent_uid, uid)`,
    `CREATE INDEX deleted_repos_by_path ON deleted_repos (path, uid)`,
    `CREATE INDEX deleted_repos_by_ledger ON deleted_repos (ledger_id, uid)`,
    ...rowsOfLedgers[t.engine](t),
  ],
}

const rowsOfLedgers: Record<Words['engine'], (t: Words) => string[]> = {
  // It has no other way to change what a column refers to. Nothing refers to the table, so that it can be dropped, and rows
  // that come in the order of their key are appended, however many there are.
  sqlite: (t) => [
    `CREATE TABLE new_tag_history (
       repo_id         ${t.int} NOT NULL REFERENCES ledgers (id),
       tag             ${t.text} NOT NULL,
       time            ${t.text} NOT NULL,
       event           ${t.int} NOT NULL,
       digest          ${t.text} NOT NULL,
       previous_digest ${t.text} NOT NULL,
       media_type      ${t.text} NOT NULL,
       size            ${t.int} NOT NULL,
       actor           ${t.text} NOT NULL,
       source          ${t.int} NOT NULL,
       PRIMARY KEY (repo_id, tag, time)
     )${t.withoutRowid}`,
    `INSERT INTO new_tag_history
     SELECT repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source
       FROM tag_history ORDER BY repo_id, tag, time`,
    `DROP TABLE tag_history`,
    `ALTER TABLE new_tag_history RENAME TO tag_history`,
    `CREATE INDEX tag_history_by_digest ON tag_history (repo_id, digest, tag, time)`,
  ],
  postgres: () => [
    `ALTER TABLE tag_history DROP CONSTRAINT tag_history_repo_id_fkey`,
    `ALTER TABLE tag_history ADD CONSTRAINT tag_history_repo_id_fkey FOREIGN KEY (repo_id) REFERENCES ledgers (id)`,
    // Behind every number that the column itself ever gave, also to rows that are gone.
    `SELECT setval(pg_get_serial_sequence('repo_ids', 'id'),
                   greatest(nextval(pg_get_serial_sequence('repos', 'id')::regclass),
                            nextval(pg_get_serial_sequence('repo_ids', 'id')::regclass)), false)`,
    `ALTER TABLE repos ALTER COLUMN id DROP IDENTITY`,
  ],
}
