import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0146-expand-scim-emails',
  up: (t) => [
    // E-mail addresses of provisioned people, in lower case, for filters.
    `CREATE TABLE scim_emails (
       user_id     ${t.text} NOT NULL REFERENCES scim_users (id) ON DELETE CASCADE,
       position    ${t.int} NOT NULL,
       value_key   ${t.text} NOT NULL,
       type_key    ${t.text} NOT NULL,
       is_primary  ${t.bool} NOT NULL,
       PRIMARY KEY (user_id, position)
     )${t.withoutRowid}`,
    // The update time of the person whose addresses the table above has. It differs for people whom an earlier release wrote.
    `ALTER TABLE scim_users ADD COLUMN emails_of ${t.text} NOT NULL DEFAULT ''`,
    `CREATE INDEX scim_users_without_emails ON scim_users (provider_uid, id) WHERE emails_of <> update_time`,
    // Pages list people in the order in which they were added.
    `CREATE INDEX scim_users_by_time ON scim_users (provider_uid, create_time, id)`,
  ],
}
