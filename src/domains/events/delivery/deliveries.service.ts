import type { Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit, newEvent, withId } from '#domains/outbox/emit.ts'
import { insertSentEvent } from '#domains/outbox/outbox.store.ts'
import {
  type AppError,
  type FieldViolation,
  failedPrecondition,
  found,
  invalid,
  notFound,
  refuseIfAny,
  type ViolationType,
} from '#lib/errors.ts'
import type { Kind } from '#lib/events/event-body.ts'
import { descriptionPattern, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { type Listed, toListed } from '#lib/lists/paging.ts'
import { bumpQueues, pauseQueue, resumeQueue } from '../routing/queues.store.ts'
import { insertDeliveries, lockRouting, type NewDelivery } from '../routing/routing.store.ts'
import { wants } from '../routing/type-patterns.ts'
import { trimDeliveries } from '../subscriptions/retention.store.ts'
import { newSecret, secretText } from '../subscriptions/secrets.ts'
import { subscriptionType } from '../subscriptions/subscriptions.model.ts'
import { attempt } from './attempt.ts'
import { countBehind, countInSubjectQueues } from './backlog.store.ts'
import * as model from './deliveries.model.ts'
import * as store from './deliveries.store.ts'
import { requireCapacityFor } from './delivery-limits.service.ts'
import { insertAttempts } from './sending.store.ts'

/**
 * Other transactions update queues all the time. With row locks instead of serializability, these transactions only delay each
 * other briefly.
 */
const rowLocks = { isolation: 'rowLocks' } as const

export async function getSettings(call: Call, uid: string): Promise<model.Settings> {
  return shown(call, await requireSettings(call.app.db, uid))
}

export async function updateSettings(
  call: Call,
  uid: string,
  patch: Patch<Pick<model.Settings, 'types'>>,
): Promise<model.Settings> {
  const types = patch.paths.includes('types') ? [...new Set(patch.value.types ?? [])] : undefined
  if (types) checkTypes(types)
  return change(call, uid, model.changedSettings, async (tx, { id }) => {
    if (types) await store.setTypes(tx, id, types)
    return true
  })
}

export async function pauseSubscription(call: Call, uid: string, reason: string): Promise<model.Settings> {
  if (!descriptionPattern.test(reason)) {
    throw invalid({ field: 'reason', description: 'must be one line of at most 512 characters' })
  }
  return change(call, uid, model.pausedSettings, (tx, { id }) => pauseQueue(tx, id, reason))
}

export async function resumeSubscription(call: Call, uid: string): Promise<model.Settings> {
  return change(call, uid, model.resumedSettings, async (tx, { id }) => {
    await lockRouting(tx)
    await resumeQueue(tx, id)
    return true
  })
}

/** Replaces the secret of a subscription. Only this response contains the new secret. */
export async function rotateSecret(
  call: Call,
  uid: string,
  overlapMs = model.defaultOverlapMs,
): Promise<{ secret: string; settings: model.Settings }> {
  if (overlapMs < 0 || overlapMs > model.maxOverlapMs) {
    throw invalid({ field: 'overlap', description: 'must be from 0 to 7 days' })
  }
  const { cipher } = call.app
  const secret = newSecret(cipher)
  const until = new Date(Date.parse(call.now) + overlapMs).toISOString()
  const settings = await change(call, uid, model.newSecretSettings, async (tx, { id, secretShown }) => {
    // If the previous secret was never shown, no receiver can use it, so it expires at once.
    await store.setSecret(tx, id, secret, secretShown && overlapMs > 0 ? until : '')
    return true
  })
  return { secret: secretText(cipher, secret), settings }
}

/** Sends one test event now, and stores the result like that of any other delivery. */
export async function sendTestEvent(call: Call, uid: string): Promise<model.Delivery> {
  const { db } = call.app
  const { subscriber } = await requireSettings(db, uid)
  const target = found(await store.findTargetOf(db, subscriber.id), subscriptionType, uid)
  const resource = model.toTestEventResource({ subscription: uid, message: 'test event requested over the API' })
  const about = { subject: uid, group: subscriber.group, resource }
  const event = withId(newEvent(call.app, call.cause, 'control.events.subscription.test', about))
  const outcome = await attempt(call.app, call.url, target, { ...event, id: 0, extensions: '' })
  const id = await db.tx(async (tx) => {
    await lockRouting(tx)
    const { id: subscription } = (await requireSettings(tx, uid)).subscriber
    const eventId = await insertSentEvent(tx, event)
    const first = await insertDeliveries(tx, [{ subscription, event: eventId, subject: uid, createTime: call.now }])
    await insertAttempts(tx, [{ delivery: first, ...outcome, createTime: call.now }])
    const { delivered, givenUp } = model.deliveryStates
    await store.storeTestResult(tx, first, outcome.result === 'delivered' ? delivered : givenUp)
    await trimDeliveries(tx, subscription, model.kept.deliveries, 10)
    return first
  }, rowLocks)
  call.log.info('test event sent', { uid, result: outcome.result, status: outcome.status })
  return getDelivery(call, model.deliveryUid(uid, id))
}

export async function listDeliveries(
  call: Call,
  { page, filter }: ListQuery<{ subscription: string; state: model.DeliveryState | undefined }>,
): Promise<Listed<model.Delivery>> {
  const { db } = call.app
  const { subscription, state } = filter
  const { subscriber } = await requireSettings(db, subscription)
  const after = page.after && model.readDeliveryUid(page.after.uid)?.id
  const [rows, total] = await Promise.all([
    store.listDeliveries(db, subscriber, page, state, after),
    store.countDeliveries(db, subscriber.id, state),
  ])
  return toListed(call, page, rows, total)
}

export async function getDelivery(
  call: Call,
  uid: string,
): Promise<model.Delivery & { attempts: model.DeliveryAttempt[] }> {
  const { db } = call.app
  const named = model.readDeliveryUid(uid)
  const found = named && (await store.findSettings(db, named.subscription))
  const [delivery] = found ? await store.findDeliveries(db, found.subscriber, [named.id]) : []
  if (!named || delivery?.uid !== uid) throw notFound(model.deliveryType, uid)
  return { ...delivery, attempts: await store.attemptsOf(db, named.id, model.maxAttemptsShown) }
}

/** Creates new deliveries of the same events, in the order of the request. */
export async function redeliver(call: Call, uid: string, uids: readonly string[]): Promise<model.Delivery[]> {
  if (uids.length === 0 || uids.length > model.maxRedeliveries) {
    throw invalid({ field: 'delivery_uids', description: `must have 1 to ${model.maxRedeliveries} uids` })
  }
  const made = await call.app.db.tx(async (tx) => {
    await lockRouting(tx)
    const { subscriber } = await requireSettings(tx, uid)
    const numbers = uids.map((one) => model.readDeliveryUid(one)?.id ?? 0)
    const found = new Map((await store.findDeliveries(tx, subscriber, numbers)).map((one) => [one.uid, one]))
    const deliveries = uids.map((one): NewDelivery => {
      const { event, subject } = redeliverable(found.get(one), one)
      return { subscription: subscriber.id, event, subject, createTime: call.now }
    })
    await requireCapacityFor(call.app, tx, { ...subscriber, wanted: deliveries.length })
    const first = await insertDeliveries(tx, deliveries)
    await bumpQueues(tx, [subscriber.id], { deliveries: deliveries.length }, '', call.now)
    const ids = deliveries.map((_, i) => first + i)
    return (await store.findDeliveries(tx, subscriber, ids)).sort((a, b) => (a.uid < b.uid ? -1 : 1))
  }, rowLocks)
  call.app.events.queued.notify()
  call.log.info('events queued for redelivery', { uid, count: made.length })
  return made
}

function redeliverable(delivery: model.Delivery | undefined, uid: string): model.Delivery {
  if (!delivery) throw notFound(model.deliveryType, uid)
  const refuse = (type: ViolationType, description: string): AppError =>
    failedPrecondition({ type, subject: uid, description })
  if (delivery.state === model.deliveryStates.waiting)
    throw refuse('STILL_WAITING', 'the delivery is still pending, so it cannot be sent again')
  if (delivery.eventId === '')
    throw refuse('EVENT_NOT_KEPT', 'the event of the delivery is no longer stored, so it cannot be sent again')
  return delivery
}

/** Runs a change of a subscription. Emits the event only if `work` has changed something. */
async function change(
  call: Call,
  uid: string,
  kind: Kind<model.ShownSettings>,
  work: (tx: Tx, subscriber: store.Subscriber) => Promise<boolean>,
): Promise<model.Settings> {
  const after = await call.app.db.tx(async (tx) => {
    const { subscriber } = await requireSettings(tx, uid)
    const changed = await work(tx, subscriber)
    const found = await requireSettings(tx, uid)
    const about = { subject: uid, group: subscriber.group, resource: kind(found.settings) }
    if (changed) await emit(tx, call, 'events.subscription.updated', about)
    return found
  }, rowLocks)
  call.app.events.queued.notify()
  call.log.info('subscription settings changed', { uid, method: call.method.name })
  return shown(call, after)
}

/** Settings with the number of pending deliveries. The number includes events that were not tried yet. */
async function shown({ app }: Call, { settings, subscriber }: store.Found): Promise<model.Settings> {
  if (subscriber.behind === 0) return settings
  const behind = [
    ...(await countBehind(app.db, subscriber, model.maxCountedBehind)),
    ...(await countInSubjectQueues(app.db, { ...subscriber, upTo: subscriber.behind }, model.maxCountedBehind)),
  ]
  const counts = behind.filter(({ type }) => wants(app, subscriber, { type, subject: '' })).map(({ count }) => count)
  return { ...settings, waiting: counts.reduce((sum, count) => sum + count, settings.waiting) }
}

async function requireSettings(reader: Reader, uid: string) {
  return found(await store.findSettings(reader, uid), subscriptionType, uid)
}

function checkTypes(types: readonly string[]): void {
  const problems: FieldViolation[] = []
  if (types.length > model.maxTypes) {
    problems.push({ field: 'types', description: `must have at most ${model.maxTypes} patterns` })
  }
  if (!types.every((one) => /^[a-z0-9._*-]+$/.test(one) && one.length <= model.maxTypeLength)) {
    const description = `must be event types of at most ${model.maxTypeLength} characters; * matches any text`
    problems.push({ field: 'types', description })
  }
  refuseIfAny(problems)
}
