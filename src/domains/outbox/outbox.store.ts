import { join, type Sql, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'

/** An event that waits for delivery. */
export type OutboxEvent = {
  /** ID of the event, which all of its deliveries have. */
  uuid: string
  type: string
  audience: string
  /** Path below the URL of this server, or another source. */
  source: string
  subject: string
  group: string
  /** JSON of the actor. */
  actor: string
  bodyType: string
  /** JSON of the body, as it is delivered. */
  body: string
  /** CloudEvents extension attributes by their lower-case names. */
  extensions?: Readonly<Record<string, string | undefined>>
  createTime: string
}

/** Most events in one statement. With more events, SQLite takes longer for each of them. */
const perStatement = 40

/**
 * Inserts events with few statements. After the commit, events are routed to subscriptions. `tx.after` should notify
 * `app.events.written`.
 */
export async function insertEvents(tx: Tx, events: readonly OutboxEvent[]): Promise<void> {
  for (const some of chunks(events, perStatement)) await tx.run(insertion(some, 0))
}

/**
 * Inserts an event for a single receiver. The event has no position and is never routed to subscriptions. Returns the number of
 * the event.
 */
export async function insertSentEvent(tx: Tx, event: OutboxEvent): Promise<number> {
  const row = await tx.get<{ id: number }>(sql`${insertion([event], -1)} RETURNING id`)
  return row!.id
}

function insertion(events: readonly OutboxEvent[], position: number): Sql {
  const rows = events.map((event) => {
    const extensions = event.extensions ? JSON.stringify(event.extensions) : ''
    return sql`(${event.uuid}, ${event.type}, ${event.audience}, ${event.source}, ${event.subject}, ${event.group},
                ${event.actor}, ${event.bodyType}, ${event.body}, ${extensions}, ${position}, ${event.createTime})`
  })
  return sql`
    INSERT INTO events_outbox (uuid, type, audience, source, subject, event_group, actor, body_type, body, extensions,
                               position, create_time)
    VALUES ${join(rows, ', ')}`
}
