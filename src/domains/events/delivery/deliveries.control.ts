import type { Handlers } from '#app.ts'
import {
  DeliveriesService,
  Delivery_State,
  type Delivery as DeliveryMessage,
  DeliverySchema,
  ReplayEventsResponseSchema,
  RotateSubscriptionSecretResponseSchema,
  type SubscriptionSettings,
  SubscriptionSettingsSchema,
  TestEventSchema,
} from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import { getting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { invalid } from '#lib/errors.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { readPage } from '#lib/lists/paging.ts'
import { toIso } from '#lib/timestamp.ts'
import {
  changedSettings,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryState,
  deliveryFields,
  deliveryStates,
  newSecretSettings,
  pausedSettings,
  resumedSettings,
  type ShownSettings,
  toTestEventResource,
} from './deliveries.model.ts'
import * as service from './deliveries.service.ts'
import { replayEvents } from './replays.service.ts'

const { method } = DeliveriesService
const toSettings = messageOf(SubscriptionSettingsSchema)
const toRotated = messageOf(RotateSubscriptionSecretResponseSchema)
const toReplayed = messageOf(ReplayEventsResponseSchema)
const toDelivery = messageOf(DeliverySchema)
const rules = { fields: deliveryFields, defaultOrder: 'uid desc' }

export const deliveries: Handlers<typeof DeliveriesService> = {
  getSubscriptionSettings: getting(service.getSettings, toSettings),

  async updateSubscriptionSettings(call, { settings, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: { types: settings?.types ?? [] } }
    return toSettings(await service.updateSettings(call, settings?.uid ?? '', patch))
  },

  async pauseSubscription(call, { uid, reason }) {
    return toSettings(await service.pauseSubscription(call, uid, reason))
  },

  resumeSubscription: getting(service.resumeSubscription, toSettings),

  async rotateSubscriptionSecret(call, { uid, overlap }) {
    const overlapMs = overlap && Number(overlap.seconds) * 1000 + overlap.nanos / 1e6
    const { secret, settings } = await service.rotateSecret(call, uid, overlapMs)
    return toRotated({ secret, settings: toSettings(settings) })
  },

  sendTestEvent: getting(service.sendTestEvent, toMessage),

  listDeliveries: listing(
    method.listDeliveries,
    rules,
    ({ uid, state }) => ({ subscription: uid, state: readState(state) }),
    service.listDeliveries,
    toMessage,
  ),
  getDelivery: getting(service.getDelivery, toMessage),

  async redeliver(call, { uid, deliveryUids }) {
    const made = await service.redeliver(call, uid, deliveryUids)
    return { $typeName: 'pinfold.control.events.v1.RedeliverResponse', deliveries: made.map(toMessage) }
  },

  async replayEvents(call, { uid, startTime, endTime, pageToken }) {
    if (!startTime) throw invalid({ field: 'start_time', description: 'is required' })
    const [from, until] = [toIso(startTime), endTime && toIso(endTime)]
    const page = readPage(call, { pageSize: 0, pageToken, orderBy: '', skip: 0 }, rules, [uid, from, until ?? ''])
    const { count, next } = await replayEvents(call, uid, { from, to: until ?? call.now }, page)
    return toReplayed({ eventCount: count, nextPageToken: next })
  },
}

export const deliveryEvents: readonly EventBody[] = [
  eventBody(method.updateSubscriptionSettings, changedSettings, toShown),
  eventBody(method.pauseSubscription, pausedSettings, toShown),
  eventBody(method.resumeSubscription, resumedSettings, toShown),
  eventBody(method.rotateSubscriptionSecret, newSecretSettings, (settings) => {
    return toRotated({ settings: toShown(settings) })
  }),
  eventBody(TestEventSchema, toTestEventResource, messageOf(TestEventSchema)),
]

const states: readonly (readonly [DeliveryState, Delivery_State])[] = [
  [deliveryStates.waiting, Delivery_State.WAITING],
  [deliveryStates.delivered, Delivery_State.DELIVERED],
  [deliveryStates.givenUp, Delivery_State.GIVEN_UP],
]

function readState(state: Delivery_State): DeliveryState | undefined {
  if (state === Delivery_State.STATE_UNSPECIFIED) return undefined
  const found = states.find(([, message]) => message === state)
  if (!found) throw invalid({ field: 'state', description: 'must be a delivery state: WAITING, DELIVERED or GIVEN_UP' })
  return found[0]
}

/** Settings of a subscription without the state of its queue, because a change of settings does not include the state. */
function toShown({ uid, types, paused, pauseReason }: ShownSettings): SubscriptionSettings {
  return toSettings({ uid, types, paused, pauseReason, waiting: 0, givenUp: 0, failures: 0 })
}

function endOf({ createTime, durationMs }: DeliveryAttempt): string {
  return new Date(Date.parse(createTime) + durationMs).toISOString()
}

function toMessage(delivery: Delivery & { attempts?: readonly DeliveryAttempt[] }): DeliveryMessage {
  const { lastAttempt, createTime } = delivery
  const state = states.find(([ours]) => ours === delivery.state)![1]
  return toDelivery({ attempts: [], ...delivery, state, updateTime: lastAttempt ? endOf(lastAttempt) : createTime })
}
