import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0118-expand-gates',
  up: (t) => [
    // Admission policies, at and below a group or a repo. The rule of a policy is JSON.
    `CREATE TABLE gates (
       id                 ${t.id},
       uid                ${t.text} NOT NULL UNIQUE,
       group_uid          ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       scope_uid          ${t.text} NOT NULL,
       name               ${t.text} NOT NULL,
       mode               ${t.text} NOT NULL,
       rule               ${t.text} NOT NULL,
       exempt_pulled_days ${t.int} NOT NULL,
       create_time        ${t.text} NOT NULL,
       update_time        ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX gates_by_group ON gates (group_uid)`,
    // Exemptions of digests until a day. A row never changes, except for its revocation.
    `CREATE TABLE gate_exceptions (
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
    `CREATE INDEX gate_exceptions_by_group ON gate_exceptions (group_uid)`,
    `CREATE INDEX gate_exceptions_live ON gate_exceptions (uid, expire_time) WHERE revoke_time = ''`,
  ],
}
