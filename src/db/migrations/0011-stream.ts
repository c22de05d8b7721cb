import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0011-stream',
  up: () => [`CREATE INDEX events_outbox_by_uuid ON events_outbox (uuid)`],
}
