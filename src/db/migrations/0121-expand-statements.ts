import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0121-expand-statements',
  up: (t) => [
    // What documents say was made of vulnerabilities, as JSON; empty where they say nothing of that.
    `ALTER TABLE scan_report_texts ADD COLUMN statements ${t.text} NOT NULL DEFAULT ''`,
    // Of a risk that is accepted since a statement says so: which one, and what it says.
    `ALTER TABLE risk_acceptances ADD COLUMN statement ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE risk_acceptances ADD COLUMN stated ${t.text} NOT NULL DEFAULT ''`,
  ],
}
