import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { limitsOf, requireCapacity } from '#domains/iam/groups/limits.service.ts'
import { listNodes } from '#domains/iam/groups/list-nodes.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { type FieldViolation, found, notFound } from '#lib/errors.ts'
import { checkFields } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { routeBacklog, routeEverything, wakeConsumers } from '../routing/routing.ts'
import { newSecret } from './secrets.ts'
import {
  type Subscription,
  subscriptionFields,
  subscriptionType,
  toSubscriptionResource,
  withoutSecrets,
} from './subscriptions.model.ts'
import * as store from './subscriptions.store.ts'

const update = [capabilityNumber('subscriptions.update')]

/** Hides secrets of the sink from callers who cannot change the subscription. */
function shownTo({ caller }: Call, subscription: Subscription): Subscription {
  return caller.rights.holds(subscription.uid, update) ? subscription : withoutSecrets(subscription)
}

export async function getSubscription(call: Call, uid: string): Promise<Subscription> {
  return shownTo(call, found(await store.findSubscription(call.app.db, uid), subscriptionType, uid))
}

export async function listSubscriptions(call: Call, query: ListQuery<object>): Promise<Listed<Subscription>> {
  const listed = await listNodes(call, query, store.subscriptionList)
  return { ...listed, items: listed.items.map((one) => shownTo(call, one)) }
}

/**
 * Creates a subscription. The subscription receives events that commit later, and no earlier events. Event names are those of the
 * API that the caller uses.
 */
export async function createSubscription(call: Call, parent: string, sink: string): Promise<Subscription> {
  const { db, cipher } = call.app
  const created: Subscription = { uid: newUid(parent), sink, createTime: call.now, updateTime: call.now }
  checkSink(call, created)
  const secret = newSecret(cipher)

  await routeBacklog(call.app, call.now)
  // The transaction waits for the row that routing locks. Serializability is not needed, because the reference to the group
  // prevents its deletion in the meantime.
  const work = db.tx(
    async (tx) => {
      const routed = await routeEverything(call.app, tx, call.now)
      await requireGroup(tx, parent)
      const limits = await limitsOf(tx, call, rootOf(parent))
      requireCapacity(limits, 'subscriptions', await store.countOf(tx, rootOf(parent)))
      requireCapacity(limits, 'sink_subscriptions', await store.countOfSink(tx, rootOf(parent), sink))
      await store.insertSubscription(tx, created, secret, call.vendor?.token ?? '')
      const resource = toSubscriptionResource(created)
      await emit(tx, call, 'events.subscription.created', { subject: created.uid, resource })
      return routed
    },
    { isolation: 'rowLocks' },
  )
  wakeConsumers(call.app, await work)
  call.log.info('subscription created', { uid: created.uid })
  return created
}

/** Deletes a subscription. Its pending deliveries are not sent any more. */
export async function deleteSubscription(call: Call, uid: string): Promise<void> {
  const { db, events } = call.app
  // The owner of the queue often locks the row. With row locks instead of serializability, this only causes a short wait.
  const work = db.tx(
    async (tx) => {
      const found = await store.findSubscription(tx, uid)
      if (!found || !(await store.deleteSubscription(tx, found))) throw notFound(subscriptionType, uid)
      await emitDeleted(tx, call, 'events.subscription.deleted', uid)
    },
    { isolation: 'rowLocks' },
  )
  await work
  events.queued.notify()
  call.log.info('subscription deleted', { uid })
}

const explanations: Record<string, string> = {
  insecure: 'must be an https URL; the operator can allow http with PINFOLD_ALLOW_INSECURE_SINKS=on',
  'private-address':
    'must not be a private or loopback address; the operator can allow some of them with PINFOLD_SINKS_PRIVATE',
}

/** Validates the sink. Errors never contain the sink, because it may contain a secret. */
function checkSink(call: Call, subscription: Subscription): void {
  const { sink } = subscription
  const reason = sink === '' ? undefined : call.app.sinks.problemOf(sink)
  const description = 'must be an absolute https URL without user name and password'
  const problems: FieldViolation[] = reason ? [{ field: 'sink', description: explanations[reason] ?? description }] : []
  checkFields<Subscription>(subscriptionFields, subscription, problems)
}
