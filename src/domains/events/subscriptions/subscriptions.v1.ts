// Subscriptions in version 1 of the API, with other names and without pages. The rules are the same as in version 2.
import type { Handlers } from '#app.ts'
import {
  type Subscription as SubscriptionMessage,
  SubscriptionSchema,
  Subscriptions,
} from '#gen/pinfold/events/v1/subscriptions_pb.ts'
import { creating, deleting } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { type EventBody, eventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { toSubscriptionResource, withoutSecrets } from './subscriptions.model.ts'
import * as service from './subscriptions.service.ts'

const { method } = Subscriptions
const toMessage = messageOf(SubscriptionSchema, { id: 'uid' })
const sinkOf = (subscription: SubscriptionMessage | undefined) => required(subscription, 'subscription').sink

export const subscriptionsV1: Handlers<typeof Subscriptions> = {
  create: creating(['parentId', 'subscription'], sinkOf, service.createSubscription, toMessage),
  delete: deleting('id', service.deleteSubscription),

  async list(call, { id, uidp }) {
    const subscriptions = await wholeList(call, { uidp, id }, {}, service.listSubscriptions)
    return { $typeName: 'pinfold.platform.events.SubscriptionList', items: subscriptions.map(toMessage) }
  },
}

export const subscriptionEventsV1: readonly EventBody[] = [
  eventBody(method.create, toSubscriptionResource, (subscription) => toMessage(withoutSecrets(subscription))),
  eventBody(method.delete, toDeletionResource, () => null),
]
