import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0045-job-titles',
  up: (t) => [
    // What a person says they do where they work.
    `ALTER TABLE identities ADD COLUMN job_title ${t.text} NOT NULL DEFAULT ''`,
  ],
}
