import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0010-deliveries',
  up: (t) => [
    // CloudEvents extension attributes as JSON; empty for none.
    `ALTER TABLE events_outbox ADD COLUMN extensions ${t.text} NOT NULL DEFAULT ''`,
    // Position in the single order of all events, assigned after the commit; 0 until then. Older events have -1 and count as
    // positioned, since nobody can have subscribed to them.
    `ALTER TABLE events_outbox ADD COLUMN position ${t.int} NOT NULL DEFAULT -1`,
    `CREATE INDEX events_outbox_unrouted ON events_outbox (id) WHERE position = 0`,
    `CREATE INDEX events_outbox_by_position ON events_outbox (position) WHERE position > 0`,
    `CREATE INDEX events_outbox_by_time ON events_outbox (create_time, id)`,
    // Single row, locked by the server that routes events. So positions and the ids of deliveries grow in the order of
    // commits. No number is used twice, even after its row was deleted.
    `CREATE TABLE events_router (
       id            ${t.int} PRIMARY KEY,
       position      ${t.int} NOT NULL,
       deliveries    ${t.int} NOT NULL,
       subscriptions ${t.int} NOT NULL
     )${t.strict}`,
    `INSERT INTO events_router (id, position, deliveries, subscriptions) VALUES (1, 0, 0, 0)`,

    `CREATE TABLE subscriptions (
       id              ${t.int} PRIMARY KEY,
       uid             ${t.text} NOT NULL UNIQUE,
       parent_uid      ${t.text} NOT NULL REFERENCES groups (uid),
       sink            ${t.text} NOT NULL,
       types           ${t.text} NOT NULL DEFAULT '[]',
       secret          ${t.bytes} NOT NULL,
       secret_shown    ${t.bool} NOT NULL DEFAULT 0,
       old_secret      ${t.bytes},
       old_secret_time ${t.text} NOT NULL DEFAULT '',
       create_time     ${t.text} NOT NULL,
       update_time     ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX subscriptions_by_parent ON subscriptions (parent_uid, uid)`,

    // State of the delivery of each subscription. It outlives a deleted subscription until its deliveries are deleted too.
    // Every addition raises the generation; work is left while it differs from the one that was served to the end.
    `CREATE TABLE delivery_queues (
       subscription_id ${t.int} PRIMARY KEY,
       generation      ${t.int} NOT NULL DEFAULT 0,
       served          ${t.int} NOT NULL DEFAULT 0,
       due_time        ${t.text} NOT NULL DEFAULT '',
       owner           ${t.text} NOT NULL DEFAULT '',
       beat            ${t.int} NOT NULL DEFAULT 0,
       failures        ${t.int} NOT NULL DEFAULT 0,
       blocked_until   ${t.text} NOT NULL DEFAULT '',
       resets          ${t.int} NOT NULL DEFAULT 0,
       paused          ${t.bool} NOT NULL DEFAULT 0,
       pause_reason    ${t.text} NOT NULL DEFAULT '',
       deleted         ${t.bool} NOT NULL DEFAULT 0
     )${t.strict}`,
    `CREATE INDEX delivery_queues_open ON delivery_queues (subscription_id) WHERE generation <> served AND paused = 0`,
    `CREATE INDEX delivery_queues_deleted ON delivery_queues (subscription_id) WHERE deleted = 1`,

    // One event for one subscription. States: 0 waiting, 1 delivered, 2 given up.
    `CREATE TABLE deliveries (
       id              ${t.int} PRIMARY KEY,
       subscription_id ${t.int} NOT NULL,
       event_id        ${t.int} NOT NULL,
       subject         ${t.text} NOT NULL,
       state           ${t.int} NOT NULL DEFAULT 0,
       attempts        ${t.int} NOT NULL DEFAULT 0,
       next_time       ${t.text} NOT NULL DEFAULT '',
       create_time     ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX deliveries_by_state ON deliveries (subscription_id, state, id)`,
    `CREATE INDEX deliveries_by_subscription ON deliveries (subscription_id, id)`,
    `CREATE INDEX deliveries_waiting ON deliveries (subscription_id, subject, id) WHERE state = 0`,
    `CREATE INDEX deliveries_given_up ON deliveries (id) WHERE state = 2`,
    `CREATE TABLE delivery_attempts (
       id          ${t.id},
       delivery_id ${t.int} NOT NULL,
       result      ${t.text} NOT NULL,
       status      ${t.int} NOT NULL,
       duration_ms ${t.int} NOT NULL,
       create_time ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX delivery_attempts_by_delivery ON delivery_attempts (delivery_id, id)`,
  ],
}
