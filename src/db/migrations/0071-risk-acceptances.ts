import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0071-risk-acceptances',
  up: (t) => [
    // Accepted risks: a vulnerability is accepted in some place until a day, with a reason. A row never changes, except for
    // its end, since past reports show the state of their day. 'vulnerability' is the name that it is counted under.
    `CREATE TABLE risk_acceptances (
       id            ${t.id},
       uid           ${t.text} NOT NULL UNIQUE,
       group_uid     ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       scope_uid     ${t.text} NOT NULL,
       digest        ${t.text} NOT NULL,
       package       ${t.text} NOT NULL,
       vulnerability ${t.text} NOT NULL,
       reason        ${t.text} NOT NULL,
       actor         ${t.text} NOT NULL,
       create_time   ${t.text} NOT NULL,
       expire_time   ${t.text} NOT NULL,
       end_time      ${t.text} NOT NULL DEFAULT '',
       end_actor     ${t.text} NOT NULL DEFAULT '',
       end_reason    ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE INDEX risk_acceptances_by_scope ON risk_acceptances (scope_uid, vulnerability, id)`,
    `CREATE INDEX risk_acceptances_by_group ON risk_acceptances (group_uid)`,
    `CREATE INDEX risk_acceptances_due ON risk_acceptances (expire_time, id) WHERE end_time = ''`,
    `CREATE INDEX risk_acceptances_live ON risk_acceptances (uid) WHERE end_time = ''`,
  ],
}
