import { join, sql, type Tx } from '#db/sql.ts'

/** An event that waits for delivery. */
export type OutboxEvent = {
  /** The id that every delivery of the event carries. */
  uuid: string
  type: string
  audience: string
  source: string
  subject: string
  group: string
  /** Who caused it, as JSON. */
  actor: string
  bodyType: string
  /** JSON in the spelling that is delivered. */
  body: string
  createTime: string
}

export async function insertEvent(tx: Tx, event: OutboxEvent): Promise<void> {
  await tx.run(sql`
    INSERT INTO events_outbox (uuid, type, audience, source, subject, event_group, actor, body_type, body, create_time)
    VALUES (${event.uuid}, ${event.type}, ${event.audience}, ${event.source}, ${event.subject}, ${event.group},
            ${event.actor}, ${event.bodyType}, ${event.body}, ${event.createTime})`)
}

/** Several in one statement, for events that are written together. */
export async function insertEvents(tx: Tx, events: readonly OutboxEvent[]): Promise<void> {
  const rows = events.map((event) => {
    return sql`(${event.uuid}, ${event.type}, ${event.audience}, ${event.source}, ${event.subject}, ${event.group},
                ${event.actor}, ${event.bodyType}, ${event.body}, ${event.createTime})`
  })
  if (rows.length === 0) return
  await tx.run(sql`
    INSERT INTO events_outbox (uuid, type, audience, source, subject, event_group, actor, body_type, body, create_time)
    VALUES ${join(rows, ', ')}`)
}
