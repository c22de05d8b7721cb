import { randomUUIDv7 } from 'node:crypto'
import type { App, Call, Caller } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { newUid } from '#lib/uid.ts'
import { isAudited, maxUserAgent } from '../audit/audit.model.ts'
import { insertEntry } from '../audit/audit.store.ts'
import { insertEvents, type OutboxEvent } from './outbox.store.ts'

export type EventInput = {
  /** The uid of the resource. */
  subject: string
  /** The group whose subscriptions receive the event. */
  group: string
  /** The JSON shape of the event's body: the resource, or for a deletion the request; null where there is nothing to say. */
  body: object | null
  /** Who caused it, where the method itself finds that out; otherwise the caller. */
  actor?: string
  /** CloudEvents extension attributes that only this kind of event has, by their lower-case names. */
  extensions?: Readonly<Record<string, string>>
}

/**
 * Queues the event of the current method inside the caller's transaction, and writes it into the audit log if it is about
 * access: the change, its event and its entry commit together.
 */
export async function emit(tx: Tx, call: Call, { subject, group, body, actor, extensions }: EventInput): Promise<void> {
  const rule = call.method.event
  if (!rule) throw new Error(`${call.method.fullName} declares no event`)
  // The group has a column of its own.
  const missing = rule.extensions.find((name) => name !== 'group' && extensions?.[name] === undefined)
  if (missing) throw new Error(`${call.method.fullName} declares the extension ${missing} for its event`)
  const event: Omit<OutboxEvent, 'uuid'> = {
    type: rule.type,
    audience: rule.audience,
    source: rule.source,
    subject,
    group,
    actor: JSON.stringify(actor === undefined ? actorOf(call.caller) : { subject: actor }),
    bodyType: rule.bodyType,
    body: body === null ? 'null' : rule.render(body),
    ...(extensions ? { extensions } : {}),
    createTime: call.now,
  }
  await queueEvents(tx, call.app, event)
  if (isAudited(event.type)) await audit(tx, call, event)
}

/** Who it is, and by which claims of an outside token they had signed in. */
function actorOf({ uid, token }: Caller): { subject: string; act?: object } {
  return { subject: uid, ...(token?.act ? { act: token.act } : {}) }
}

type Audited = Omit<OutboxEvent, 'uuid'>

async function audit(tx: Tx, call: Call, { type, subject, group, actor, bodyType, body }: Audited): Promise<void> {
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

/** Queues events that no method of the contract declares, such as those of the registry's own protocol. */
export async function queueEvents(
  tx: Tx,
  app: Pick<App, 'events'>,
  ...events: Omit<OutboxEvent, 'uuid'>[]
): Promise<void> {
  await insertEvents(
    tx,
    // Of version 7, since ids that grow with time are cheaper to index.
    events.map((event) => ({ uuid: randomUUIDv7(), ...event })),
  )
  tx.after(() => app.events.written.notify())
}
