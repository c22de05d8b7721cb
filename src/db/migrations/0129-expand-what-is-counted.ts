import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0129-expand-what-is-counted',
  up: (t) => [
    // How many bytes an organisation is charged for what it finds by its own advisories. What it has found before is not charged.
    `ALTER TABLE findings ADD COLUMN charged ${t.int} NOT NULL DEFAULT 0`,
    `CREATE INDEX findings_charged ON findings (place, charged) WHERE charged > 0`,
    // How many bytes a pull of the image transfers, which its manifests and its configuration say; -1 where nobody has looked.
    `ALTER TABLE image_contents ADD COLUMN size ${t.int} NOT NULL DEFAULT -1`,
    // The ecosystems that the packages of a list are of, as JSON; empty for lists of before until the next sweep.
    `ALTER TABLE component_lists ADD COLUMN ecosystems ${t.text} NOT NULL DEFAULT ''`,
  ],
}
