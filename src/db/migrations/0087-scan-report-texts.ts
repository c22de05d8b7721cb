import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0087-scan-report-texts',
  up: (t) => [
    // Long texts of reports, apart from their other columns, so that a list of reports reads none of them.
    // Column 'levels' has the severity of each vulnerability, for counts; empty in earlier reports.
    `CREATE TABLE scan_report_texts (
       report_id       ${t.int} NOT NULL PRIMARY KEY REFERENCES scan_reports (id) ON DELETE CASCADE,
       vulnerabilities ${t.text} NOT NULL,
       levels          ${t.text} NOT NULL DEFAULT ''
     )${t.strict}`,
    `INSERT INTO scan_report_texts (report_id, vulnerabilities)
     SELECT id, vulnerabilities FROM scan_reports WHERE state = 2`,
    // Size in bytes, which counts toward the quota of the organization.
    `ALTER TABLE scan_reports ADD COLUMN size ${t.int} NOT NULL DEFAULT 0`,
    `UPDATE scan_reports SET size = octet_length(vulnerabilities) WHERE state = 2`,
    `ALTER TABLE scan_reports DROP COLUMN vulnerabilities`,
    `INSERT INTO organization_usage (org_uid, shard, bytes, uploads, upload_bytes)
     SELECT organization, -1, CAST(sum(size) AS BIGINT), 0, 0 FROM scan_reports WHERE size > 0 GROUP BY organization
         ON CONFLICT (org_uid, shard) DO UPDATE SET bytes = organization_usage.bytes + excluded.bytes`,
    // Reports of a digest in one organization, so that those of other organizations do not count.
    `CREATE INDEX scan_reports_by_organization ON scan_reports (digest, organization, id) WHERE state = 2`,
  ],
}
