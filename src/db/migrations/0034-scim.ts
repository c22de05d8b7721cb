import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0034-scim',
  up: (t) => [
    // The state of a provider's SCIM endpoint as JSON, with hashes of its tokens; empty until its first token.
    `ALTER TABLE identity_providers ADD COLUMN scim ${t.text} NOT NULL DEFAULT ''`,
    // Provisioned users. User names are compared without regard to case (RFC 7643, 4.1.1); resource is the JSON that the
    // provider has sent.
    `CREATE TABLE scim_users (
       id            ${t.text} PRIMARY KEY,
       provider_uid  ${t.text} NOT NULL REFERENCES identity_providers (uid),
       user_name     ${t.text} NOT NULL,
       user_name_key ${t.text} NOT NULL,
       external_id   ${t.text},
       active        ${t.bool} NOT NULL,
       resource      ${t.text} NOT NULL,
       create_time   ${t.text} NOT NULL,
       update_time   ${t.text} NOT NULL,
       UNIQUE (provider_uid, user_name_key),
       UNIQUE (provider_uid, external_id)
     )${t.strict}`,
    `CREATE INDEX scim_users_by_provider ON scim_users (provider_uid, id)`,
    // Deprovisioned users, whose accounts stay closed.
    `CREATE TABLE scim_removals (
       provider_uid ${t.text} NOT NULL REFERENCES identity_providers (uid),
       external_id  ${t.text} NOT NULL,
       remove_time  ${t.text} NOT NULL,
       PRIMARY KEY (provider_uid, external_id)
     )${t.strict}`,
  ],
}
