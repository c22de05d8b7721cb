import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0044-access-requests',
  up: (t) => [
    // Requests to join an organization that has the domain of the person's verified e-mail address. The uid is below that of
    // the organization. 'state' is 'waiting' or 'refused'; a refused person can ask again after 'expire_time'.
    `CREATE TABLE access_requests (
       uid          ${t.text} PRIMARY KEY,
       parent_uid   ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       identity_uid ${t.text} NOT NULL REFERENCES identities (uid) ON DELETE CASCADE,
       name         ${t.text} NOT NULL,
       email        ${t.text} NOT NULL,
       state        ${t.text} NOT NULL,
       create_time  ${t.text} NOT NULL,
       ask_time     ${t.text} NOT NULL,
       expire_time  ${t.text} NOT NULL,
       UNIQUE (parent_uid, identity_uid)
     )${t.withoutRowid}`,
    `CREATE INDEX access_requests_by_state ON access_requests (parent_uid, state, uid)`,
    `CREATE INDEX access_requests_by_identity ON access_requests (identity_uid)`,
    `CREATE INDEX access_requests_by_end ON access_requests (expire_time)`,
  ],
}
