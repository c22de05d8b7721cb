import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0075-scan-reports',
  up: (t) => [
    // Reports of outside scanners about an image: uploaded, pushed as a referrer, or requested. A report waits until it is
    // read, and never changes afterwards. The organization is the first part of the uid of the repo.
    `CREATE TABLE scan_reports (
       id              ${t.counter},
       repo_id         ${t.int} NOT NULL REFERENCES repos (id),
       organization    ${t.text} NOT NULL,
       digest          ${t.text} NOT NULL,
       origin          ${t.int} NOT NULL,
       referrer        ${t.text} NOT NULL,
       raw_digest      ${t.text} NOT NULL,
       actor           ${t.text} NOT NULL,
       take_time       ${t.text} NOT NULL,
       state           ${t.int} NOT NULL,
       reason          ${t.text} NOT NULL DEFAULT '',
       message         ${t.text} NOT NULL DEFAULT '',
       attempts        ${t.int} NOT NULL DEFAULT 0,
       due_time        ${t.text} NOT NULL,
       scanner         ${t.int} NOT NULL DEFAULT 0,
       tool            ${t.text} NOT NULL DEFAULT '',
       tool_version    ${t.text} NOT NULL DEFAULT '',
       format          ${t.text} NOT NULL DEFAULT '',
       build_time      ${t.text} NOT NULL DEFAULT '',
       create_time     ${t.text} NOT NULL DEFAULT '',
       seen_time       ${t.text} NOT NULL DEFAULT '',
       total           ${t.int} NOT NULL DEFAULT 0,
       vulnerabilities ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `CREATE INDEX scan_reports_by_image ON scan_reports (repo_id, digest, id)`,
    `CREATE INDEX scan_reports_by_digest ON scan_reports (digest, id)`,
    `CREATE INDEX scan_reports_by_repo ON scan_reports (repo_id, id)`,
    `CREATE UNIQUE INDEX scan_reports_by_referrer ON scan_reports (repo_id, referrer) WHERE referrer <> ''`,
    `CREATE INDEX scan_reports_by_raw ON scan_reports (repo_id, raw_digest)`,
    `CREATE INDEX scan_reports_waiting ON scan_reports (organization, due_time, id) WHERE state = 1`,
  ],
}
