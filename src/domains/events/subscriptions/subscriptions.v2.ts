import type { Handlers } from '#app.ts'
import {
  type Subscription as SubscriptionMessage,
  SubscriptionsService,
} from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { aSubscription, type Subscription, subscriptionFields, withoutSecrets } from './subscriptions.model.ts'
import * as service from './subscriptions.service.ts'

const rules = { fields: subscriptionFields, defaultOrder: 'uid' }

export const subscriptions: Handlers<typeof SubscriptionsService> = {
  async getSubscription(call, { uid }) {
    return toMessage(await service.getSubscription(call, uid))
  },

  async listSubscriptions(call, request) {
    const listed = await service.listSubscriptions(call, readList(call, request, rules, {}))
    return listResponse(
      'pinfold.platform.events.v2.ListSubscriptionsResponse',
      'subscriptions',
      listed,
      toMessage,
      request,
    )
  },

  async createSubscription(call, { parent, subscription }) {
    if (!subscription) throw invalid({ field: 'subscription', description: 'is required' })
    return toMessage(await service.createSubscription(call, parent, subscription.sink))
  },

  async deleteSubscription(call, { uid }) {
    await service.deleteSubscription(call, uid)
    return empty
  },
}

export const subscriptionEvents: readonly EventBody[] = [
  eventBody(SubscriptionsService.method.createSubscription, aSubscription, toEventBody),
  deletionBody(SubscriptionsService.method.deleteSubscription),
]

/** All that subscribe to the group, and whoever reads the audit log, see it. */
function toEventBody(subscription: Subscription): SubscriptionMessage {
  return toMessage(withoutSecrets(subscription))
}

function toMessage({ uid, sink, createTime, updateTime }: Subscription): SubscriptionMessage {
  return {
    $typeName: 'pinfold.platform.events.v2.Subscription',
    uid,
    sink,
    createTime: timestamp(createTime),
    updateTime: timestamp(updateTime),
  }
}
