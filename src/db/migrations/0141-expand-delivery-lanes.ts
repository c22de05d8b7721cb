import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0141-expand-delivery-lanes',
  up: (t) => [
    // Subjects of which events before the position of a queue have not all been tried yet: those behind this position.
    `CREATE TABLE delivery_lanes (
       subscription_id ${t.int} NOT NULL REFERENCES delivery_queues (subscription_id) ON DELETE CASCADE,
       subject         ${t.text} NOT NULL,
       position        ${t.int} NOT NULL,
       PRIMARY KEY (subscription_id, subject)
     )${t.withoutRowid}`,
  ],
}
