// Version 1 of subscriptions: other names, and lists in full. The rules are those of version 2.
import type { Handlers } from '#app.ts'
import { type Subscription as SubscriptionMessage, Subscriptions } from '#gen/pinfold/events/v1/subscriptions_pb.ts'
import { invalid } from '#lib/errors.ts'
import { aDeletion, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { empty } from '#lib/wire.ts'
import { aSubscription, type Subscription, withoutSecrets } from './subscriptions.model.ts'
import * as service from './subscriptions.service.ts'

export const subscriptionsV1: Handlers<typeof Subscriptions> = {
  async create(call, { parentId, subscription }) {
    if (!subscription) throw invalid({ field: 'subscription', description: 'is required' })
    return toMessage(await service.createSubscription(call, parentId, subscription.sink))
  },

  async list(call, { id, uidp }) {
    const subscriptions = await wholeList(call, { uidp, id }, {}, service.listSubscriptions)
    return { $typeName: 'pinfold.platform.events.SubscriptionList', items: subscriptions.map(toMessage) }
  },

  async delete(call, { id }) {
    await service.deleteSubscription(call, id)
    return empty
  },
}

export const subscriptionEventsV1: readonly EventBody[] = [
  eventBody(Subscriptions.method.create, aSubscription, (subscription) => toMessage(withoutSecrets(subscription))),
  eventBody(Subscriptions.method.delete, aDeletion, () => null),
]

function toMessage({ uid, sink }: Subscription): SubscriptionMessage {
  return { $typeName: 'pinfold.platform.events.Subscription', id: uid, sink }
}
