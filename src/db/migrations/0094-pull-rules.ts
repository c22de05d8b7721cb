import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0094-pull-rules',
  up: (t) => [
    // Cooldown policies: minimum age of images that certain identities pull, at and below a group or a repo. Lists are JSON;
    // the columns `_ms` are in milliseconds.
    `CREATE TABLE pull_rules (
       id          ${t.id},
       uid         ${t.text} NOT NULL UNIQUE,
       group_uid   ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       scope_uid   ${t.text} NOT NULL,
       name        ${t.text} NOT NULL,
       tags        ${t.text} NOT NULL,
       except_tags ${t.text} NOT NULL,
       identities  ${t.text} NOT NULL,
       below_group ${t.text} NOT NULL,
       age_ms      ${t.int} NOT NULL,
       hold_ms     ${t.int} NOT NULL,
       count_from  ${t.text} NOT NULL,
       mode        ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL,
       update_time ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX pull_rules_by_group ON pull_rules (group_uid)`,
    // Exemptions of digests until a day. A row never changes, except for its revocation.
    `CREATE TABLE pull_rule_exceptions (
       id          ${t.id},
       uid         ${t.text} NOT NULL UNIQUE,
       group_uid   ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       scope_uid   ${t.text} NOT NULL,
       digest      ${t.text} NOT NULL,
       reason      ${t.text} NOT NULL,
       actor       ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL,
       expire_time ${t.text} NOT NULL,
       revoke_time ${t.text} NOT NULL DEFAULT '',
       revoked_by  ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE INDEX pull_rule_exceptions_by_group ON pull_rule_exceptions (group_uid)`,
    `CREATE INDEX pull_rule_exceptions_live ON pull_rule_exceptions (uid, expire_time) WHERE revoke_time = ''`,
  ],
}
