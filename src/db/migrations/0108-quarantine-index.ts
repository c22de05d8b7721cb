import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0108-quarantine-index',
  // For whoever asks of one digest whether it may be pulled.
  up: () => [`CREATE INDEX quarantined_by_digest ON quarantined (digest) WHERE release_time = ''`],
}
