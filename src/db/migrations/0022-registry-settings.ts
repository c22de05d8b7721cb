import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0022-registry-settings',
  up: (t) => [
    // Both go with what they are about.
    `CREATE TABLE registry_settings (
       org_uid          ${t.text} PRIMARY KEY REFERENCES groups (uid) ON DELETE CASCADE,
       unique_tags      ${t.bool} NOT NULL,
       eol_grace_period ${t.bool} NOT NULL
     )${t.withoutRowid}`,
    // The charts as JSON: few, and always read and written together.
    `CREATE TABLE deployments (
       repo_uid ${t.text} PRIMARY KEY REFERENCES repos (uid) ON DELETE CASCADE,
       charts   ${t.text} NOT NULL
     )${t.withoutRowid}`,
  ],
}
