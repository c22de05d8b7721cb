import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0031-sign-in',
  up: (t) => [
    // Sign-ins that have begun and wait for the provider to send the person back. State and browser are hashes; `sealed`
    // holds what only the callback needs, `asked` what is done once the person is known.
    `CREATE TABLE sign_in_attempts (
       state_hash   ${t.text} PRIMARY KEY,
       browser_hash ${t.text} NOT NULL,
       provider     ${t.text} NOT NULL,
       callback     ${t.text} NOT NULL,
       sealed       ${t.bytes} NOT NULL,
       asked        ${t.text} NOT NULL,
       expire_time  ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX sign_in_attempts_by_time ON sign_in_attempts (expire_time)`,
    // Sessions of people. The uid is below that of the person. A browser presents a cookie, a client its tokens.
    // 'organization' is the limit of the session. 'end_time' moves with each use, up to 'expire_time'.
    `CREATE TABLE sessions (
       uid            ${t.text} PRIMARY KEY,
       identity_uid   ${t.text} NOT NULL,
       kind           ${t.text} NOT NULL,
       cookie_hash    ${t.text} UNIQUE,
       provider       ${t.text} NOT NULL,
       organization   ${t.text} NOT NULL,
       upstream_sid   ${t.text} NOT NULL,
       act            ${t.text} NOT NULL,
       profile        ${t.text} NOT NULL,
       granted        ${t.text} NOT NULL,
       id_token       ${t.bytes},
       auth_time      ${t.int} NOT NULL,
       source         ${t.text} NOT NULL,
       user_agent     ${t.text} NOT NULL,
       create_time    ${t.text} NOT NULL,
       last_used_time ${t.text} NOT NULL,
       end_time       ${t.text} NOT NULL,
       expire_time    ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX sessions_by_identity ON sessions (identity_uid, uid)`,
    `CREATE INDEX sessions_by_organization ON sessions (organization, uid)`,
    `CREATE INDEX sessions_by_provider ON sessions (provider, upstream_sid)`,
    `CREATE INDEX sessions_by_end ON sessions (end_time)`,
    // The refresh tokens of a session: which family they are of, the one that is good and the one before it.
    `CREATE TABLE refresh_tokens (
       session_uid   ${t.text} PRIMARY KEY REFERENCES sessions (uid) ON DELETE CASCADE,
       family_hash   ${t.text} NOT NULL UNIQUE,
       current_hash  ${t.text} NOT NULL,
       previous_hash ${t.text} NOT NULL,
       rotated_time  ${t.text} NOT NULL,
       sealed_key    ${t.bytes} NOT NULL
     )${t.withoutRowid}`,
    // Logout tokens of providers that have been taken, each counts once.
    `CREATE TABLE logout_tokens (
       provider    ${t.text} NOT NULL,
       jti_hash    ${t.text} NOT NULL,
       expire_time ${t.text} NOT NULL,
       PRIMARY KEY (provider, jti_hash)
     )${t.withoutRowid}`,
    `CREATE INDEX logout_tokens_by_time ON logout_tokens (expire_time)`,
    // People who have signed in with a provider of an organization before, and are therefore not new there.
    `CREATE TABLE organization_people (
       organization ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       identity_uid ${t.text} NOT NULL,
       create_time  ${t.text} NOT NULL,
       PRIMARY KEY (organization, identity_uid)
     )${t.withoutRowid}`,
    // Codes that let the operator's browser in.
    `CREATE TABLE console_codes (
       code_hash   ${t.text} PRIMARY KEY,
       expire_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
    // Organization whose provider alone identifies a person; empty if a provider of the settings knows the person.
    `ALTER TABLE identities ADD COLUMN vouched_by ${t.text} NOT NULL DEFAULT ''`,
  ],
}
