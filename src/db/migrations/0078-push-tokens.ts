import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0078-push-tokens',
  up: (t) => [
    // Push tokens: passwords for the registry that people and workloads create for themselves. The uid is below that of the
    // creator. The operator has no row among the identities; 'identity_uid' is null then. The group of the token is 'parent_uid'.
    // Column 'repos' is JSON: the uids of its repositories, if the token is limited to some. Four columns describe the
    // session in which the creator had signed in.
    `CREATE TABLE push_tokens (
       uid             ${t.text} PRIMARY KEY,
       identity_uid    ${t.text} REFERENCES identities (uid) ON DELETE CASCADE,
       parent_uid      ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       root_uid        ${t.text} NOT NULL,
       user_name       ${t.text} NOT NULL UNIQUE,
       secret_hash     ${t.text} NOT NULL,
       name            ${t.text} NOT NULL,
       repos           ${t.text} NOT NULL,
       push            ${t.int} NOT NULL,
       provider        ${t.text} NOT NULL,
       organization    ${t.text} NOT NULL,
       external_id     ${t.text} NOT NULL,
       issuer          ${t.text} NOT NULL,
       create_time     ${t.text} NOT NULL,
       expire_time     ${t.text} NOT NULL,
       last_used_time  ${t.text} NOT NULL,
       last_used_from  ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX push_tokens_by_identity ON push_tokens (identity_uid, uid)`,
    `CREATE INDEX push_tokens_by_parent ON push_tokens (parent_uid)`,
    `CREATE INDEX push_tokens_by_root ON push_tokens (root_uid, uid)`,
    `CREATE INDEX push_tokens_by_provider ON push_tokens (provider, external_id)`,
    `CREATE INDEX push_tokens_by_end ON push_tokens (expire_time)`,
  ],
}
