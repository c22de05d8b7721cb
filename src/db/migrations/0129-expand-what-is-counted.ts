import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0129-expand-what-is-counted',
  up: (t) => [
    // Bytes that an organization is charged for findings of its own advisories. Earlier findings are not charged.
    `ALTER TABLE findings ADD COLUMN charged ${t.int} NOT NULL DEFAULT 0`,
    `CREATE INDEX findings_charged ON findings (place, charged) WHERE charged > 0`,
    // Bytes that a pull of the image transfers, by its manifests and its configuration; -1 if unknown.
    `ALTER TABLE image_contents ADD COLUMN size ${t.int} NOT NULL DEFAULT -1`,
    // The ecosystems that the packages of a list are of, as JSON; empty for lists of before until the next sweep.
    `ALTER TABLE component_lists ADD COLUMN ecosystems ${t.text} NOT NULL DEFAULT ''`,
  ],
}
