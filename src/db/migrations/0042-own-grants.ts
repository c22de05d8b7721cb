import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0042-own-grants',
  up: (t) => [
    // Programs that wait for a person to type a code into a browser elsewhere (RFC 8628). Both codes are hashes; `answer` is
    // empty until the person approves, with the session that they did it from, or refuses.
    `CREATE TABLE device_codes (
       device_hash  ${t.text} PRIMARY KEY,
       user_hash    ${t.text} NOT NULL UNIQUE,
       client_id    ${t.text} NOT NULL,
       asked        ${t.text} NOT NULL,
       network      ${t.text} NOT NULL,
       source       ${t.text} NOT NULL,
       user_agent   ${t.text} NOT NULL,
       answer       ${t.text} NOT NULL,
       session_uid  ${t.text} NOT NULL,
       poll_seconds ${t.int} NOT NULL,
       polled_time  ${t.text} NOT NULL,
       create_time  ${t.text} NOT NULL,
       expire_time  ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX device_codes_by_network ON device_codes (network, expire_time)`,
    `CREATE INDEX device_codes_by_time ON device_codes (expire_time)`,
    // Codes that a program on loopback exchanges for the tokens of a session. A used code is kept for a while: using it again
    // ends the session.
    `CREATE TABLE sign_in_codes (
       code_hash   ${t.text} PRIMARY KEY,
       session_uid ${t.text} NOT NULL REFERENCES sessions (uid) ON DELETE CASCADE,
       client_id   ${t.text} NOT NULL,
       redirect    ${t.text} NOT NULL,
       challenge   ${t.text} NOT NULL,
       nonce       ${t.text} NOT NULL,
       asked       ${t.text} NOT NULL,
       used        ${t.int} NOT NULL,
       expire_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX sign_in_codes_by_session ON sign_in_codes (session_uid)`,
    `CREATE INDEX sign_in_codes_by_time ON sign_in_codes (expire_time)`,
    // Credentials that a program without a browser fetches once; only its own key decrypts them.
    `CREATE TABLE headless_sign_ins (
       code_hash   ${t.text} PRIMARY KEY,
       public_key  ${t.text} NOT NULL,
       encrypted   ${t.bytes} NOT NULL,
       expire_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX headless_sign_ins_by_time ON headless_sign_ins (expire_time)`,
    `CREATE INDEX organization_people_by_identity ON organization_people (identity_uid)`,
  ],
}
