import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0149-expand-scim-groups',
  up: (t) => [
    // Groups that identity providers push. Display names are compared without regard to case. group_key is the name that
    // role mappings know the group by. revision counts the changes, also those of the members.
    `CREATE TABLE scim_groups (
       id           ${t.text} PRIMARY KEY,
       provider_uid ${t.text} NOT NULL REFERENCES identity_providers (uid) ON DELETE CASCADE,
       display_name ${t.text} NOT NULL,
       name_key     ${t.text} NOT NULL,
       external_id  ${t.text},
       group_key    ${t.text} NOT NULL,
       resource     ${t.text} NOT NULL,
       revision     ${t.int} NOT NULL,
       create_time  ${t.text} NOT NULL,
       update_time  ${t.text} NOT NULL,
       UNIQUE (provider_uid, name_key),
       UNIQUE (provider_uid, group_key)
     )${t.strict}`,
    `CREATE INDEX scim_groups_by_time ON scim_groups (provider_uid, create_time, id)`,
    `CREATE TABLE scim_group_members (
       group_id ${t.text} NOT NULL REFERENCES scim_groups (id) ON DELETE CASCADE,
       user_id  ${t.text} NOT NULL REFERENCES scim_users (id) ON DELETE CASCADE,
       PRIMARY KEY (group_id, user_id)
     )${t.withoutRowid}`,
    `CREATE INDEX scim_group_members_by_user ON scim_group_members (user_id, group_id)`,
  ],
}
