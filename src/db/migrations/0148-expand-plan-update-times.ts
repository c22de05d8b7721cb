import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0148-expand-plan-update-times',
  up: (t) => [
    // The time of the last change of a retention plan. It is empty for plans that an earlier release made or changed last.
    `ALTER TABLE retention_plans ADD COLUMN update_time ${t.text} NOT NULL DEFAULT ''`,
  ],
}
