import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0019-digest-usage',
  up: (t) => [
    // Pulls by digest, caller and day (UTC): `gets` with GET, `checks` with HEAD. The caller is a uid, empty for anonymous
    // callers, or `*` for callers of a day without a row of their own. The newest row of a digest is the last one in the
    // order of the key.
    `CREATE TABLE digest_usage (
       repo_id   ${t.int} NOT NULL,
       digest    ${t.text} NOT NULL,
       day       ${t.text} NOT NULL,
       caller    ${t.text} NOT NULL,
       gets      ${t.int} NOT NULL,
       checks    ${t.int} NOT NULL,
       last_time ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, digest, day, caller)
     )${t.withoutRowid}`,
    // Streams that are open now and want pulls: at and below which place, and until when they count if nobody says more.
    `CREATE TABLE pull_streams (
       stream      ${t.text} NOT NULL,
       place       ${t.text} NOT NULL,
       expire_time ${t.text} NOT NULL,
       PRIMARY KEY (stream, place)
     )${t.withoutRowid}`,
    `CREATE INDEX pull_streams_by_place ON pull_streams (place, expire_time)`,
  ],
}
