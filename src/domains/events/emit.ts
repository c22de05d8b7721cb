import { randomUUID } from 'node:crypto'
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { insertEvent } from './outbox.store.ts'

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
  await insertEvent(tx, {
    uuid: randomUUID(),
    type: rule.type,
    audience: rule.audience,
    source: rule.source,
    subject,
    group,
    actor: JSON.stringify({ subject: call.caller.uid }),
    bodyType: rule.bodyType,
    body: rule.render(body),
    createTime: call.now,
  })
}
