import type { Migration } from '../migrate.ts'
import type { Words } from '../words.ts'

export const migration: Migration = {
  id: '0080-people-bounds',
  up: (t) => [
    // A request outlives the account of the person, so that a new account cannot ask again: the uid of a person is always the same.
    // Column 'state' may also be 'withdrawn', if the account was deleted while the request waited.
    ...withoutAccount[t.engine](t),
    // Identity that the stored credentials are for.
    `ALTER TABLE headless_sign_ins ADD COLUMN identity_uid ${t.text} NOT NULL DEFAULT ''`,
    `CREATE INDEX headless_sign_ins_by_identity ON headless_sign_ins (identity_uid, expire_time)`,
  ],
}

const withoutAccount: Record<Words['engine'], (t: Words) => string[]> = {
  sqlite: (t) => [
    `CREATE TABLE new_access_requests (
       uid          ${t.text} PRIMARY KEY,
       parent_uid   ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       identity_uid ${t.text} NOT NULL,
       name         ${t.text} NOT NULL,
       email        ${t.text} NOT NULL,
       state        ${t.text} NOT NULL,
       create_time  ${t.text} NOT NULL,
       ask_time     ${t.text} NOT NULL,
       expire_time  ${t.text} NOT NULL,
       UNIQUE (parent_uid, identity_uid)
     )${t.withoutRowid}`,
    `INSERT INTO new_access_requests (uid, parent_uid, identity_uid, name, email, state, create_time, ask_time, expire_time)
     SELECT uid, parent_uid, identity_uid, name, email, state, create_time, ask_time, expire_time FROM access_requests`,
    `DROP TABLE access_requests`,
    `ALTER TABLE new_access_requests RENAME TO access_requests`,
    `CREATE INDEX access_requests_by_state ON access_requests (parent_uid, state, uid)`,
    `CREATE INDEX access_requests_by_identity ON access_requests (identity_uid)`,
    `CREATE INDEX access_requests_by_end ON access_requests (expire_time)`,
  ],
  postgres: () => [`ALTER TABLE access_requests DROP CONSTRAINT access_requests_identity_uid_fkey`],
}
