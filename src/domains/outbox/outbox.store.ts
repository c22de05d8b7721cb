import { join, type Sql, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'

/** An event that waits for delivery. */
export type OutboxEvent = {
  /** The id that every delivery of the event carries. */
  uuid: string
  type: string
  audience: string
  /** A path below our URL, or a source of its own. */
  source: string
  subject: string
  group: string
  /** Who caused it, as JSON. */
  actor: string
  bodyType: string
  /** JSON in the spelling that is delivered. */
  body: string
  /** CloudEvents extension attributes by their lower-case names. */
  extensions?: Readonly<Record<string, string | undefined>>
  createTime: string
}

/** A statement with more values takes SQLite longer for each of them. */
const perStatement = 40

/**
 * Several with few statements. They are routed to the subscriptions after the commit; `tx.after` should tell
 * `app.events.written`.
 */
export async function insertEvents(tx: Tx, events: readonly OutboxEvent[]): Promise<void> {
  for (const some of chunks(events, perStatement)) await tx.run(insertion(some, 0))
}

/** For an event that is nobody's but its one receiver's: it is in no order, and never routed. Answers with its number. */
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
