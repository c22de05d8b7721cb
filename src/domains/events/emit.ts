import { randomUUID } from 'node:crypto'
import type { Call } from '#app.ts'
import { sql, type Tx } from '#db/sql.ts'

export type EventInput = {
  /** The uid of the resource. */
  subject: string
  /** The group whose subscriptions receive the event. */
  group: string
  /** The JSON shape of the event's body: the resource, or for a deletion the request. */
  body: object
}

/** Queues the event of the current method inside the caller's transaction: the change and its event commit together. */
export async function emit(tx: Tx, call: Call, { subject, group, body }: EventInput): Promise<void> {
  const rule = call.method.event
  if (!rule) throw new Error(`${call.method.fullName} declares no event`)
  await tx.run(sql`
    INSERT INTO events_outbox
           (uuid, type, audience, source, subject, event_group, actor, body_type, body, create_time)
    VALUES (${randomUUID()}, ${rule.type}, ${rule.audience}, ${rule.source}, ${subject}, ${group},
            ${JSON.stringify({ subject: call.caller.uid })}, ${rule.bodyType}, ${rule.render(body)}, ${call.now})`)
}
