import { randomUUID } from 'node:crypto'
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { newUid } from '#lib/uid.ts'
import { isAudited, maxUserAgent } from './audit.model.ts'
import { insertEntry } from './audit.store.ts'
import { insertEvent, type OutboxEvent } from './outbox.store.ts'

export type EventInput = {
  /** The uid of the resource. */
  subject: string
  /** The group whose subscriptions receive the event. */
  group: string
  /** The JSON shape of the event's body: the resource, or for a deletion the request; null where there is nothing to say. */
  body: object | null
  /** Who caused it, where the method itself finds that out; otherwise the caller. */
  actor?: string
}

/**
 * Queues the event of the current method inside the caller's transaction, and writes it into the audit log if it is about
 * access: the change, its event and its entry commit together.
 */
export async function emit(tx: Tx, call: Call, { subject, group, body, actor }: EventInput): Promise<void> {
  const rule = call.method.event
  if (!rule) throw new Error(`${call.method.fullName} declares no event`)
  const event: OutboxEvent = {
    uuid: randomUUID(),
    type: rule.type,
    audience: rule.audience,
    source: rule.source,
    subject,
    group,
    actor: JSON.stringify({ subject: actor ?? call.caller.uid }),
    bodyType: rule.bodyType,
    body: body === null ? 'null' : rule.render(body),
    createTime: call.now,
  }
  await insertEvent(tx, event)
  if (isAudited(event.type)) await audit(tx, call, event)
}

async function audit(tx: Tx, call: Call, { type, subject, group, actor, bodyType, body }: OutboxEvent): Promise<void> {
  const who = JSON.parse(actor) as { subject: string; act?: object }
  await insertEntry(tx, {
    uid: newUid(group),
    type,
    subject,
    actor: who.subject,
    act: who.act ? JSON.stringify(who.act) : '',
    remoteAddress: call.source,
    userAgent: call.userAgent.slice(0, maxUserAgent).toWellFormed(),
    requestId: call.requestId,
    bodyType,
    body,
    createTime: call.now,
  })
}
