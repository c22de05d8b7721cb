import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0126-behind',
  up: (t) => [
    // The position of the last event that a subscription has its deliveries of, while it has too many to be given more;
    // 0 while each event makes one at once.
    `ALTER TABLE delivery_queues ADD COLUMN behind ${t.int} NOT NULL DEFAULT 0`,
    // Number of events that can be queued until the queue is counted again.
    `ALTER TABLE delivery_queues ADD COLUMN room ${t.int} NOT NULL DEFAULT 0`,
  ],
}
