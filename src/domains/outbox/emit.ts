import { randomUUIDv7 } from 'node:crypto'
import type { App, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import type { EventName } from '#gen/event-names.ts'
import type { Cause } from '#lib/cause.ts'
import { aDeletion, type Resource } from '#lib/events/event-body.ts'
import { newUid, parentOf } from '#lib/uid.ts'
import { isAudited, maxUserAgent } from './audit.model.ts'
import { insertEntry } from './audit.store.ts'
import { insertEvents, type OutboxEvent } from './outbox.store.ts'

export type { EventName }

export type EventInput = {
  /** The uid of the resource. */
  subject: string
  /** The group whose subscriptions receive the event; the parent of the subject unless given. */
  group?: string
  /** What the event is about. Its body is what the files of messages have registered for it. */
  resource: Resource
  /** Who caused it, where the method itself finds that out. */
  actor?: string
  /** Where it comes from, when that is no path of the API. */
  source?: string
  /**
   * CloudEvents extension attributes that only this kind of event has, by their lower-case names. What the contract
   * declares is named, as `undefined` where it is not known.
   */
  extensions?: Readonly<Record<string, string | undefined>>
}

/** An event that has no id yet. */
export type NewEvent = Omit<OutboxEvent, 'uuid'>

/**
 * Queues an event inside the transaction of the change that it tells of, and writes it into the audit log if it is about
 * access: the change, its event and its entry commit together.
 */
export async function emit(
  tx: Tx,
  { app, cause }: Pick<Work, 'app' | 'cause'>,
  name: EventName,
  input: EventInput,
): Promise<void> {
  const event = newEvent(app, cause, name, input)
  await queueEvents(tx, app, event)
  if (isAudited(name)) await audit(tx, cause, whoOf(cause, input.actor), event)
}

/** Queues the event of a deletion for the subscriptions of the parent. */
export function emitDeleted(tx: Tx, work: Pick<Work, 'app' | 'cause'>, name: EventName, uid: string): Promise<void> {
  return emit(tx, work, name, { subject: uid, resource: aDeletion({ uid }) })
}

/** The same for several of one kind, with few statements however many there are; none that is audited. */
export async function emitEach(
  tx: Tx,
  { app, cause }: Pick<Work, 'app' | 'cause'>,
  name: EventName,
  inputs: readonly EventInput[],
): Promise<void> {
  if (isAudited(name)) throw new Error(`${name} belongs in the audit log`)
  const events = inputs.map((input) => newEvent(app, cause, name, input))
  await queueEvents(tx, app, ...events)
}

/** The event as whoever called this version knows it. */
export function newEvent(
  { eventTable }: Pick<App, 'eventTable'>,
  cause: Cause,
  name: EventName,
  { subject, group = parentOf(subject), resource, actor, source, extensions }: EventInput,
): NewEvent {
  const row = eventTable.find(name, cause.version, resource.kind)
  // The group has a column of its own.
  const missing = row.extensions.find((one) => one !== 'group' && !(extensions && one in extensions))
  if (missing) throw new Error(`${name} declares the extension ${missing}`)
  return {
    type: row.type,
    audience: row.audience,
    source: source ?? row.source,
    subject,
    group,
    actor: JSON.stringify(whoOf(cause, actor)),
    bodyType: row.bodyType,
    body: row.render(resource.value),
    ...(extensions ? { extensions } : {}),
    createTime: cause.now,
  }
}

type Who = { subject: string; act?: Cause['act'] }

/** Who it is, and by which claims of an outside token they had signed in. */
function whoOf({ actor, act }: Cause, other: string | undefined): Who {
  return other === undefined ? { subject: actor, ...(act ? { act } : {}) } : { subject: other }
}

async function audit(tx: Tx, cause: Cause, who: Who, event: NewEvent): Promise<void> {
  const { type, subject, group, bodyType, body } = event
  await insertEntry(tx, {
    uid: newUid(group),
    type,
    subject,
    actor: who.subject,
    act: who.act ? JSON.stringify(who.act) : '',
    remoteAddress: cause.source,
    userAgent: cause.userAgent.slice(0, maxUserAgent).toWellFormed(),
    requestId: cause.requestId,
    bodyType,
    body,
    createTime: cause.now,
  })
}

/** Queues events that are not audited, several with few statements. */
export async function queueEvents(tx: Tx, app: Pick<App, 'events'>, ...events: NewEvent[]): Promise<void> {
  await insertEvents(tx, events.map(withId))
  tx.after(() => app.events.written.notify())
}

/** The event with the id that every delivery of it carries: of version 7, since ids that grow are cheaper to index. */
export function withId(event: NewEvent): OutboxEvent {
  return { uuid: randomUUIDv7(), ...event }
}
