import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0108-quarantine-index',
  // Index for checks of one digest before a pull.
  up: () => [`CREATE INDEX quarantined_by_digest ON quarantined (digest) WHERE release_time = ''`],
}
