import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0122-expand-witness-answers',
  up: (t) => [
    // When so many witnesses have said what they have seen of a log that a fork would have shown.
    `ALTER TABLE ledger_cosigned ADD COLUMN answered_time ${t.text} NOT NULL DEFAULT ''`,
  ],
}
