import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0115-witness',
  up: (t) => [
    // Key with which this server witnesses logs of other servers; there is one. `private_key` is encrypted.
    `CREATE TABLE witness_keys (
       id          ${t.int} PRIMARY KEY,
       vkey        ${t.text} NOT NULL UNIQUE,
       private_key ${t.bytes} NOT NULL,
       create_time ${t.text} NOT NULL
     )${t.strict}`,
    // The newest head of each log that was seen, which is the one that may be signed from.
    `CREATE TABLE witnessed_logs (
       origin    ${t.text} PRIMARY KEY,
       size      ${t.int} NOT NULL,
       root      ${t.text} NOT NULL,
       seen_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
  ],
}
