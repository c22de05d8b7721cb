import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0003-events',
  up: (t) => [
    `CREATE TABLE events_outbox (
       id          ${t.id},
       uuid        ${t.text} NOT NULL,
       type        ${t.text} NOT NULL,
       audience    ${t.text} NOT NULL,
       source      ${t.text} NOT NULL,
       subject     ${t.text} NOT NULL,
       event_group ${t.text} NOT NULL,
       actor       ${t.text} NOT NULL,
       body_type   ${t.text} NOT NULL,
       body        ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL
     )${t.strict}`,
  ],
}
