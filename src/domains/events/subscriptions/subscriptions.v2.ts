import type { Handlers } from '#app.ts'
import {
  type Subscription as SubscriptionMessage,
  SubscriptionSchema,
  SubscriptionsService,
} from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import { creating, deleting, getting, listing } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { subscriptionFields, toSubscriptionResource, withoutSecrets } from './subscriptions.model.ts'
import * as service from './subscriptions.service.ts'

const { method } = SubscriptionsService
const rules = { fields: subscriptionFields, defaultOrder: 'uid' }
const toMessage = messageOf(SubscriptionSchema)
const sinkOf = (subscription: SubscriptionMessage | undefined) => required(subscription, 'subscription').sink

export const subscriptions: Handlers<typeof SubscriptionsService> = {
  getSubscription: getting(service.getSubscription, toMessage),
  listSubscriptions: listing(method.listSubscriptions, rules, () => ({}), service.listSubscriptions, toMessage),
  createSubscription: creating(['parent', 'subscription'], sinkOf, service.createSubscription, toMessage),
  deleteSubscription: deleting('uid', service.deleteSubscription),
}

/** Bodies of the events about subscriptions. All subscribers of the group and all readers of the audit log can read them. */
export const subscriptionEvents: readonly EventBody[] = [
  eventBody(method.createSubscription, toSubscriptionResource, (subscription) =>
    toMessage(withoutSecrets(subscription)),
  ),
  deletionBody(method.deleteSubscription),
]
