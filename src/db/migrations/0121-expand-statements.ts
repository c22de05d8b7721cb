import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0121-expand-statements',
  up: (t) => [
    // Statements of documents about the handling of vulnerabilities, as JSON; empty if there are none.
    `ALTER TABLE scan_report_texts ADD COLUMN statements ${t.text} NOT NULL DEFAULT ''`,
    // Accepted risks that follow from a statement: the statement, and its content.
    `ALTER TABLE risk_acceptances ADD COLUMN statement ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE risk_acceptances ADD COLUMN stated ${t.text} NOT NULL DEFAULT ''`,
  ],
}
