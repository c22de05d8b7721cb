import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0106-request-ids',
  up: (t) => [
    // Requests that must run only once. 'id' is a hash of the caller and of its key for the request. The answer is encrypted,
    // and NULL until it is known.
    `CREATE TABLE request_ids (
       id           ${t.text} NOT NULL PRIMARY KEY,
       request_hash ${t.text} NOT NULL,
       answer       ${t.bytes},
       expire_time  ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX request_ids_by_expiry ON request_ids (expire_time)`,
  ],
}
