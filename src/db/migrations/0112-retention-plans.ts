import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0112-retention-plans',
  up: (t) => [
    // Plans of deletions by retention policies. `repo` and `digest` are the progress; `settled` counts digests that were
    // deleted or kept.
    `CREATE TABLE retention_plans (
       id                ${t.id},
       uid               ${t.text} NOT NULL UNIQUE,
       group_uid         ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       scope_uid         ${t.text} NOT NULL,
       organization      ${t.text} NOT NULL,
       state             ${t.int} NOT NULL,
       actor             ${t.text} NOT NULL,
       applied_by        ${t.text} NOT NULL DEFAULT '',
       create_time       ${t.text} NOT NULL,
       expire_time       ${t.text} NOT NULL,
       repo              ${t.text} NOT NULL DEFAULT '',
       digest            ${t.text} NOT NULL DEFAULT '',
       manifests         ${t.int} NOT NULL DEFAULT 0,
       bytes             ${t.int} NOT NULL DEFAULT 0,
       dry_run_manifests ${t.int} NOT NULL DEFAULT 0,
       dry_run_bytes     ${t.int} NOT NULL DEFAULT 0,
       truncated         ${t.int} NOT NULL DEFAULT 0,
       deleted           ${t.int} NOT NULL DEFAULT 0,
       left_over         ${t.int} NOT NULL DEFAULT 0
     )${t.strict}`,
    `CREATE INDEX retention_plans_by_group ON retention_plans (group_uid)`,
    `CREATE INDEX retention_plans_by_organization ON retention_plans (organization, id)`,
    `CREATE INDEX retention_plans_open ON retention_plans (organization, id) WHERE state IN (1, 3)`,
    `CREATE INDEX retention_plans_by_end ON retention_plans (expire_time)`,
    // `position` is the order in which manifests were found. A manifest that belongs to another one has a higher `level`, so it
    // is deleted later.
    `CREATE TABLE planned_deletions (
       plan_id    ${t.int} NOT NULL REFERENCES retention_plans (id) ON DELETE CASCADE,
       position   ${t.int} NOT NULL,
       repo_uid   ${t.text} NOT NULL,
       level      ${t.int} NOT NULL,
       digest     ${t.text} NOT NULL,
       why        ${t.int} NOT NULL,
       rule       ${t.text} NOT NULL,
       until_time ${t.text} NOT NULL,
       part_of    ${t.text} NOT NULL,
       bytes      ${t.int} NOT NULL,
       dry_run    ${t.int} NOT NULL,
       outcome    ${t.int} NOT NULL DEFAULT 0,
       PRIMARY KEY (plan_id, position)
     )${t.withoutRowid}`,
    `CREATE INDEX planned_deletions_open ON planned_deletions (plan_id, repo_uid, level, position)
      WHERE outcome = 0 AND dry_run = 0`,
    `CREATE INDEX planned_deletions_by_digest ON planned_deletions (plan_id, repo_uid, digest)`,
  ],
}
