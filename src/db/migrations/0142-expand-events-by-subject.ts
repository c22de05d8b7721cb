import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0142-expand-events-by-subject',
  up: () => [
    // The next event of a subject that a subscription is behind with. With the second condition only queries with a subject use it.
    `CREATE INDEX events_outbox_by_subject ON events_outbox (subject, position)
      WHERE position > 0 AND subject IS NOT NULL`,
  ],
}
