import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0087-scan-report-texts',
  up: (t) => [
    // What reports say is long, so it is apart from what is known of them: a list of reports reads none of it. 'levels' is how
    // bad each vulnerability is, for counts; empty in reports of before.
    `CREATE TABLE scan_report_texts (
       report_id       ${t.int} NOT NULL PRIMARY KEY REFERENCES scan_reports (id) ON DELETE CASCADE,
       vulnerabilities ${t.text} NOT NULL,
       levels          ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `INSERT INTO scan_report_texts (report_id, vulnerabilities)
     SELECT id, vulnerabilities FROM scan_reports WHERE state = 2`,
    // How many bytes that is, which the organisation is charged.
    `ALTER TABLE scan_reports ADD COLUMN size ${t.int} NOT NULL DEFAULT 0`,
    `UPDATE scan_reports SET size = octet_length(vulnerabilities) WHERE state = 2`,
    `ALTER TABLE scan_reports DROP COLUMN vulnerabilities`,
    `INSERT INTO organization_usage (org_uid, shard, bytes, uploads, upload_bytes)
     SELECT organization, -1, CAST(sum(size) AS BIGINT), 0, 0 FROM scan_reports WHERE size > 0 GROUP BY organization
         ON CONFLICT (org_uid, shard) DO UPDATE SET bytes = organization_usage.bytes + excluded.bytes`,
    // Of a digest in one organisation, so that those of others do not count.
    `CREATE INDEX scan_reports_by_organization ON scan_reports (digest, organization, id) WHERE state = 2`,
  ],
}
