import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0122-expand-witness-answers',
  up: (t) => [
    // Time by which enough witnesses have answered with their view of the log, so that a fork would have shown.
    `ALTER TABLE ledger_cosigned ADD COLUMN answered_time ${t.text} NOT NULL DEFAULT ''`,
  ],
}
