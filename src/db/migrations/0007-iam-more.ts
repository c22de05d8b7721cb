import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0007-iam-more',
  up: (t) => [
    // `oidc` is all that is told about the provider; the secret is sealed, or empty when there is none.
    `CREATE TABLE identity_providers (
       id            ${t.id},
       uid           ${t.text} NOT NULL UNIQUE,
       parent_uid    ${t.text} NOT NULL REFERENCES groups (uid),
       name          ${t.text} NOT NULL,
       description   ${t.text} NOT NULL DEFAULT '',
       default_role  ${t.text} NOT NULL REFERENCES roles (uid),
       oidc          ${t.text} NOT NULL,
       client_secret ${t.bytes} NOT NULL,
       create_time   ${t.text} NOT NULL,
       update_time   ${t.text} NOT NULL,
       UNIQUE (parent_uid, name)
     )${t.strict}`,
    `CREATE INDEX identity_providers_by_parent ON identity_providers (parent_uid, uid)`,
    `CREATE INDEX identity_providers_by_name ON identity_providers (name, uid)`,
    `CREATE INDEX identity_providers_by_role ON identity_providers (default_role, uid)`,

    `CREATE TABLE external_group_role_mappings (
       id                ${t.id},
       uid               ${t.text} NOT NULL UNIQUE,
       parent_uid        ${t.text} NOT NULL REFERENCES identity_providers (uid),
       external_group_id ${t.text} NOT NULL,
       role_uid          ${t.text} NOT NULL REFERENCES roles (uid),
       scope             ${t.text} NOT NULL,
       create_time       ${t.text} NOT NULL,
       UNIQUE (parent_uid, external_group_id, role_uid, scope)
     )${t.strict}`,
    `CREATE INDEX external_group_role_mappings_by_parent ON external_group_role_mappings (parent_uid, uid)`,
    `CREATE INDEX external_group_role_mappings_by_role ON external_group_role_mappings (role_uid, uid)`,

    // Each invite has a key pair of its own, of which only the public half is kept: nobody can make its code again.
    `CREATE TABLE group_invites (
       id              ${t.id},
       uid             ${t.text} NOT NULL UNIQUE,
       parent_uid      ${t.text} NOT NULL REFERENCES groups (uid),
       role_uid        ${t.text} NOT NULL,
       email           ${t.text} NOT NULL DEFAULT '',
       expiration_time ${t.text} NOT NULL,
       single_use      ${t.bool} NOT NULL,
       key_id          ${t.text} NOT NULL UNIQUE,
       public_key      ${t.bytes} NOT NULL,
       create_time     ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX group_invites_by_parent ON group_invites (parent_uid, uid)`,
    `CREATE INDEX group_invites_by_key ON group_invites (key_id, uid)`,
    `CREATE INDEX group_invites_by_role ON group_invites (role_uid, expiration_time)`,
    `CREATE INDEX group_invites_by_expiration ON group_invites (parent_uid, expiration_time)`,

    // The uid is the group's own, so a group has at most one.
    `CREATE TABLE account_associations (
       id          ${t.id},
       uid         ${t.text} NOT NULL UNIQUE REFERENCES groups (uid),
       parent_uid  ${t.text} NOT NULL,
       name        ${t.text} NOT NULL,
       description ${t.text} NOT NULL DEFAULT '',
       accounts    ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL,
       update_time ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX account_associations_by_parent_name ON account_associations (parent_uid, name, uid)`,
    `CREATE INDEX account_associations_by_parent ON account_associations (parent_uid, uid)`,
    `CREATE INDEX account_associations_by_name ON account_associations (name, uid)`,

    `CREATE TABLE terms_acceptances (
       group_uid   ${t.text} NOT NULL REFERENCES groups (uid),
       doc_id      ${t.text} NOT NULL,
       accepted_by ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL,
       PRIMARY KEY (group_uid, doc_id)
     )${t.withoutRowid}`,
    `CREATE INDEX terms_acceptances_by_time ON terms_acceptances (group_uid, create_time, doc_id)`,
  ],
}
