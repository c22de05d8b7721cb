import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0045-job-titles',
  up: (t) => [
    // Job title that a person has entered.
    `ALTER TABLE identities ADD COLUMN job_title ${t.text} NOT NULL DEFAULT ''`,
  ],
}
