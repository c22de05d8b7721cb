import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0011-audit',
  up: (t) => [
    `CREATE TABLE audit_log (
       id             ${t.id},
       uid            ${t.text} NOT NULL UNIQUE,
       parent_uid     ${t.text} NOT NULL,
       type           ${t.text} NOT NULL,
       subject        ${t.text} NOT NULL,
       actor          ${t.text} NOT NULL,
       act            ${t.text} NOT NULL,
       remote_address ${t.text} NOT NULL,
       user_agent     ${t.text} NOT NULL,
       request_id     ${t.text} NOT NULL,
       body_type      ${t.text} NOT NULL,
       body           ${t.text} NOT NULL,
       create_time    ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX audit_log_by_subject ON audit_log (subject, create_time, uid)`,
  ],
}
