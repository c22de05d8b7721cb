import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0120-expand-scanners',
  up: (t) => [
    // Scanners elsewhere that the operator lets look at images. 'credential' is the header to ask them with, sealed; 'consumes',
    // 'produces', 'title' and 'build_time' are what they say of themselves.
    `CREATE TABLE scanners (
       id           ${t.id},
       name         ${t.text} NOT NULL UNIQUE,
       url          ${t.text} NOT NULL,
       credential   ${t.bytes} NOT NULL,
       groups       ${t.text} NOT NULL,
       registry_url ${t.text} NOT NULL,
       on_push      ${t.bool} NOT NULL,
       title        ${t.text} NOT NULL DEFAULT '',
       consumes     ${t.text} NOT NULL DEFAULT '[]',
       produces     ${t.text} NOT NULL DEFAULT '',
       build_time   ${t.text} NOT NULL DEFAULT '',
       ask_time     ${t.text} NOT NULL DEFAULT '',
       problem      ${t.text} NOT NULL DEFAULT '',
       create_time  ${t.text} NOT NULL,
       update_time  ${t.text} NOT NULL
     )${t.strict}`,
    // An image that a scanner is to look at. 'remote' is the name that the scanner has given the scan, once it has begun.
    `CREATE TABLE scan_jobs (
       id           ${t.counter},
       scanner_id   ${t.int} NOT NULL REFERENCES scanners (id) ON DELETE CASCADE,
       repo_id      ${t.int} NOT NULL REFERENCES repos (id),
       organization ${t.text} NOT NULL,
       digest       ${t.text} NOT NULL,
       media_type   ${t.text} NOT NULL,
       actor        ${t.text} NOT NULL,
       request_time ${t.text} NOT NULL,
       remote       ${t.text} NOT NULL DEFAULT '',
       begin_time   ${t.text} NOT NULL DEFAULT '',
       due_time     ${t.text} NOT NULL,
       attempts     ${t.int} NOT NULL DEFAULT 0,
       problem      ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE UNIQUE INDEX scan_jobs_by_image ON scan_jobs (repo_id, digest, scanner_id)`,
    `CREATE INDEX scan_jobs_waiting ON scan_jobs (scanner_id, organization, due_time, id) WHERE remote = ''`,
    `CREATE INDEX scan_jobs_begun ON scan_jobs (scanner_id, organization, due_time, id) WHERE remote <> ''`,
    // Reports of a scanner have its name in the column for the digest of the referrer.
    `DROP INDEX scan_reports_by_referrer`,
    `CREATE UNIQUE INDEX scan_reports_by_referrer ON scan_reports (repo_id, referrer) WHERE origin = 2`,
  ],
}
