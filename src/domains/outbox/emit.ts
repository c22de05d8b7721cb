import { randomUUIDv7 } from 'node:crypto'
import type { App, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { type EventName, eventTypes } from '#gen/event-names.ts'
import type { Cause } from '#lib/cause.ts'
import { type Resource, toDeletionResource } from '#lib/events/event-body.ts'
import { newUid, parentOf } from '#lib/uid.ts'
import { isAudited, maxUserAgent } from './audit.model.ts'
import { insertEntry } from './audit.store.ts'
import { describeEntry } from './audit-names.service.ts'
import { insertEvents, type OutboxEvent } from './outbox.store.ts'

export type { EventName }

/** Type of the audit entries and events with a short name. The entry of a restored backup has no event. */
export function entryTypeOf(name: string): string {
  return eventTypes[name as EventName] ?? name
}

export type EventInput = {
  /** Uid of the resource. */
  subject: string
  /** Group whose subscriptions receive the event. By default, the parent of the subject. */
  group?: string
  /** Resource of the event. Message files register how it becomes the body of an event. */
  resource: Resource
  /** Actor of the event, if the method itself determines the actor. */
  actor?: string
  /** Source of the event, if it is not a path of the API. */
  source?: string
  /**
   * CloudEvents extension attributes of this kind of event, by their lower-case names. Declared attributes must always be
   * present. An unknown value is `undefined`.
   */
  extensions?: Readonly<Record<string, string | undefined>>
}

/** An event without an ID. */
export type NewEvent = Omit<OutboxEvent, 'uuid'>

/**
 * Queues an event in the transaction of its change, and writes an audit entry if the event is audited. Change, event and entry
 * commit together.
 */
export async function emit(
  tx: Tx,
  { app, cause }: Pick<Work, 'app' | 'cause'>,
  name: EventName,
  input: EventInput,
): Promise<void> {
  const event = newEvent(app, cause, name, input)
  await queueEvents(tx, app, event)
  if (isAudited(name)) await audit(tx, { app, cause }, whoOf(cause, input.actor), event, input.resource)
}

/** Queues the event of a deletion. Subscriptions of the parent receive the event. */
export function emitDeleted(tx: Tx, work: Pick<Work, 'app' | 'cause'>, name: EventName, uid: string): Promise<void> {
  return emit(tx, work, name, { subject: uid, resource: toDeletionResource({ uid }) })
}

/** Queues several events of one kind with few statements. Throws if this kind is audited. */
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

/**
 * Builds an event. Its body has the version of the called method. If there is no such version, it has version 2, or else the only
 * version of the event.
 */
export function newEvent(
  { eventTable }: Pick<App, 'eventTable'>,
  cause: Cause,
  name: EventName,
  { subject, group = parentOf(subject), resource, actor, source, extensions }: EventInput,
): NewEvent {
  const row = eventTable.find(name, cause.version, resource.kind)
  // The group is not an extension here, since it has its own column.
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

/** Actor of an event, with the claims of the outside token of the actor. */
function whoOf({ actor, act }: Cause, other: string | undefined): Who {
  return other === undefined ? { subject: actor, ...(act ? { act } : {}) } : { subject: other }
}

async function audit(
  tx: Tx,
  { app, cause }: Pick<Work, 'app' | 'cause'>,
  who: Who,
  event: NewEvent,
  { kind }: Resource,
): Promise<void> {
  const { type, subject, group, bodyType, body } = event
  const entry = { type, subject, group, actor: who.subject, body, hidesActor: cause.hidesActor ?? false }
  const described = await describeEntry(tx, app, entry, kind === toDeletionResource.kind)
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
    ...described,
    createTime: cause.now,
  })
}

/** Queues events that are not audited, with few statements. */
export async function queueEvents(tx: Tx, app: Pick<App, 'events'>, ...events: NewEvent[]): Promise<void> {
  await insertEvents(tx, events.map(withId))
  tx.after(() => app.events.written.notify())
}

/**
 * Adds an ID to an event. All deliveries of the event have this ID. It is a UUID of version 7, since increasing IDs are cheaper
 * to index.
 */
export function withId(event: NewEvent): OutboxEvent {
  return { uuid: randomUUIDv7(), ...event }
}
