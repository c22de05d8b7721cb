import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0002-iam',
  up: (t) => [
    `CREATE TABLE groups (
       id              ${t.id},
       uid             ${t.text} NOT NULL UNIQUE,
       parent_uid      ${t.text} NOT NULL,
       tail            ${t.text} NOT NULL,
       name            ${t.text} NOT NULL,
       description     ${t.text} NOT NULL DEFAULT '',
       verified        ${t.bool} NOT NULL DEFAULT 0,
       kind            ${t.int} NOT NULL DEFAULT 0,
       status          ${t.int} NOT NULL,
       resource_limits ${t.text} NOT NULL DEFAULT '{}',
       create_time     ${t.text} NOT NULL,
       update_time     ${t.text} NOT NULL,
       UNIQUE (parent_uid, name)
     )${t.strict}`,
    `CREATE INDEX groups_by_parent ON groups (parent_uid, uid)`,
    `CREATE INDEX groups_by_name ON groups (name, uid)`,
    `CREATE INDEX groups_by_tail ON groups (tail, uid)`,

    `CREATE TABLE identities (
       id                ${t.id},
       uid               ${t.text} NOT NULL UNIQUE,
       parent_uid        ${t.text} NOT NULL,
       name              ${t.text} NOT NULL,
       description       ${t.text} NOT NULL DEFAULT '',
       company           ${t.text} NOT NULL DEFAULT '',
       email             ${t.text} NOT NULL DEFAULT '',
       email_unverified  ${t.text} NOT NULL DEFAULT '',
       relationship_type ${t.text} NOT NULL,
       relationship      ${t.text} NOT NULL,
       last_seen_time    ${t.text} NOT NULL,
       create_time       ${t.text} NOT NULL,
       update_time       ${t.text} NOT NULL
     )${t.strict}`,
    // SQLite takes the first of several equally good indexes, so the narrower ones are created first.
    `CREATE INDEX identities_by_parent_name ON identities (parent_uid, name, uid)`,
    `CREATE INDEX identities_by_parent_relationship ON identities (parent_uid, relationship_type, uid)`,
    `CREATE INDEX identities_by_relationship_name ON identities (relationship_type, name, uid)`,
    `CREATE INDEX identities_by_parent ON identities (parent_uid, uid)`,
    `CREATE INDEX identities_by_name ON identities (name, uid)`,
    `CREATE INDEX identities_by_relationship ON identities (relationship_type, uid)`,

    `CREATE TABLE roles (
       id           ${t.id},
       uid          ${t.text} NOT NULL UNIQUE,
       parent_uid   ${t.text} NOT NULL,
       name         ${t.text} NOT NULL,
       description  ${t.text} NOT NULL DEFAULT '',
       capabilities ${t.text} NOT NULL,
       create_time  ${t.text} NOT NULL,
       update_time  ${t.text} NOT NULL,
       UNIQUE (parent_uid, name)
     )${t.strict}`,
    `CREATE INDEX roles_by_parent ON roles (parent_uid, uid)`,
    `CREATE INDEX roles_by_name ON roles (name, uid)`,

    `CREATE TABLE role_bindings (
       id           ${t.id},
       uid          ${t.text} NOT NULL UNIQUE,
       parent_uid   ${t.text} NOT NULL,
       identity_uid ${t.text} NOT NULL,
       role_uid     ${t.text} NOT NULL REFERENCES roles (uid),
       create_time  ${t.text} NOT NULL,
       update_time  ${t.text} NOT NULL,
       UNIQUE (parent_uid, identity_uid, role_uid)
     )${t.strict}`,
    `CREATE INDEX role_bindings_by_parent_role ON role_bindings (parent_uid, role_uid, uid)`,
    `CREATE INDEX role_bindings_by_identity_role ON role_bindings (identity_uid, role_uid, uid)`,
    `CREATE INDEX role_bindings_by_parent ON role_bindings (parent_uid, uid)`,
    `CREATE INDEX role_bindings_by_identity ON role_bindings (identity_uid, uid)`,
    `CREATE INDEX role_bindings_by_role ON role_bindings (role_uid, uid)`,

    `CREATE TABLE signing_keys (
       kid         ${t.text} PRIMARY KEY,
       public_jwk  ${t.text} NOT NULL,
       private_jwk ${t.bytes} NOT NULL,
       active_time ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL
     )${t.strict}`,
  ],
}
