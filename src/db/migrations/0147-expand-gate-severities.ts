import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0147-expand-gate-severities',
  up: (t) => [
    // Treatment of vulnerabilities of unknown severity. Gates that were stored before keep their results.
    `ALTER TABLE gates ADD COLUMN unknown_severity ${t.text} NOT NULL DEFAULT 'NOT_COUNTED'`,
    // The preview of a gate looks for images with findings of unknown severity.
    `CREATE INDEX findings_unrated ON findings (component_id, place) WHERE gone_time = '' AND state = 1 AND severity = 0`,
  ],
}
