import type { Handlers } from '#app.ts'
import {
  DeliveriesService,
  Delivery_State,
  type DeliveryAttempt as DeliveryAttemptMessage,
  type Delivery as DeliveryMessage,
  type SubscriptionSettings,
  TestEventSchema,
} from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import { invalid } from '#lib/errors.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import {
  aTestEvent,
  changedSettings,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryState,
  deliveryFields,
  deliveryStates,
  newSecretSettings,
  pausedSettings,
  resumedSettings,
  type Settings,
  type ShownSettings,
} from './deliveries.model.ts'
import * as service from './deliveries.service.ts'
import { replayEvents } from './replays.service.ts'

const rules = { fields: deliveryFields, defaultOrder: 'uid desc' }

export const deliveries: Handlers<typeof DeliveriesService> = {
  async getSubscriptionSettings(call, { uid }) {
    return toSettings(await service.getSettings(call, uid))
  },

  async updateSubscriptionSettings(call, { settings, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: { types: settings?.types ?? [] } }
    return toSettings(await service.updateSettings(call, settings?.uid ?? '', patch))
  },

  async pauseSubscription(call, { uid, reason }) {
    return toSettings(await service.pauseSubscription(call, uid, reason))
  },

  async resumeSubscription(call, { uid }) {
    return toSettings(await service.resumeSubscription(call, uid))
  },

  async rotateSubscriptionSecret(call, { uid, overlap }) {
    const overlapMs = overlap && Number(overlap.seconds) * 1000 + overlap.nanos / 1e6
    const { secret, settings } = await service.rotateSecret(call, uid, overlapMs)
    return {
      $typeName: 'pinfold.control.events.v1.RotateSubscriptionSecretResponse',
      secret,
      settings: toSettings(settings),
    }
  },

  async sendTestEvent(call, { uid }) {
    return toMessage(await service.sendTestEvent(call, uid))
  },

  async listDeliveries(call, request) {
    const filter = { subscription: request.uid, state: readState(request.state) }
    const listed = await service.listDeliveries(call, readList(call, request, rules, filter))
    return listResponse('pinfold.control.events.v1.ListDeliveriesResponse', 'deliveries', listed, toMessage, request)
  },

  async getDelivery(call, { uid }) {
    return toMessage(await service.getDelivery(call, uid))
  },

  async redeliver(call, { uid, deliveryUids }) {
    const made = await service.redeliver(call, uid, deliveryUids)
    return { $typeName: 'pinfold.control.events.v1.RedeliverResponse', deliveries: made.map(toMessage) }
  },

  async replayEvents(call, { uid, startTime, endTime, pageToken }) {
    if (!startTime) throw invalid({ field: 'start_time', description: 'is required' })
    const [from, until] = [toIso(startTime), endTime && toIso(endTime)]
    const page = readPage(call, { pageSize: 0, pageToken, orderBy: '', skip: 0 }, rules, [uid, from, until ?? ''])
    const { count, next } = await replayEvents(call, uid, { from, to: until ?? call.now }, page)
    return {
      $typeName: 'pinfold.control.events.v1.ReplayEventsResponse',
      eventCount: BigInt(count),
      nextPageToken: next,
    }
  },
}

export const deliveryEvents: readonly EventBody[] = [
  eventBody(DeliveriesService.method.updateSubscriptionSettings, changedSettings, toShown),
  eventBody(DeliveriesService.method.pauseSubscription, pausedSettings, toShown),
  eventBody(DeliveriesService.method.resumeSubscription, resumedSettings, toShown),
  eventBody(DeliveriesService.method.rotateSubscriptionSecret, newSecretSettings, (settings) => ({
    $typeName: 'pinfold.control.events.v1.RotateSubscriptionSecretResponse' as const,
    settings: toShown(settings),
  })),
  eventBody(TestEventSchema, aTestEvent, (test) => ({
    $typeName: 'pinfold.control.events.v1.TestEvent' as const,
    ...test,
  })),
]

const states: readonly (readonly [DeliveryState, Delivery_State])[] = [
  [deliveryStates.waiting, Delivery_State.WAITING],
  [deliveryStates.delivered, Delivery_State.DELIVERED],
  [deliveryStates.givenUp, Delivery_State.GIVEN_UP],
]

function readState(state: Delivery_State): DeliveryState | undefined {
  if (state === Delivery_State.STATE_UNSPECIFIED) return undefined
  const found = states.find(([, message]) => message === state)
  if (!found) throw invalid({ field: 'state', description: 'is not a state of deliveries' })
  return found[0]
}

function toSettings(settings: Settings): SubscriptionSettings {
  const { waiting, behindTime, givenUp, blockedUntil, oldSecretExpireTime, types, ...plain } = settings
  return {
    $typeName: 'pinfold.control.events.v1.SubscriptionSettings',
    ...plain,
    types: [...types],
    waiting: BigInt(waiting),
    givenUp: BigInt(givenUp),
    ...(behindTime === '' ? {} : { behindTime: timestamp(behindTime) }),
    ...(blockedUntil === '' ? {} : { blockedUntil: timestamp(blockedUntil) }),
    ...(oldSecretExpireTime === '' ? {} : { oldSecretExpireTime: timestamp(oldSecretExpireTime) }),
  }
}

/** Without the state of the queue, which is no part of the change. */
function toShown({ uid, types, paused, pauseReason }: ShownSettings): SubscriptionSettings {
  return {
    $typeName: 'pinfold.control.events.v1.SubscriptionSettings',
    uid,
    types: [...types],
    paused,
    pauseReason,
    waiting: 0n,
    givenUp: 0n,
    failures: 0,
  }
}

function endOf({ createTime, durationMs }: DeliveryAttempt): string {
  return new Date(Date.parse(createTime) + durationMs).toISOString()
}

function toMessage(delivery: Delivery & { attempts?: readonly DeliveryAttempt[] }): DeliveryMessage {
  const { event: _, nextAttemptTime, lastAttempt, attempts = [], createTime, state, ...plain } = delivery
  return {
    $typeName: 'pinfold.control.events.v1.Delivery',
    ...plain,
    state: states.find(([ours]) => ours === state)![1],
    ...(nextAttemptTime === '' ? {} : { nextAttemptTime: timestamp(nextAttemptTime) }),
    ...(lastAttempt ? { lastAttempt: toAttempt(lastAttempt) } : {}),
    attempts: attempts.map(toAttempt),
    createTime: timestamp(createTime),
    updateTime: timestamp(lastAttempt ? endOf(lastAttempt) : createTime),
  }
}

function toAttempt({ createTime, ...plain }: DeliveryAttempt): DeliveryAttemptMessage {
  return {
    $typeName: 'pinfold.control.events.v1.DeliveryAttempt',
    ...plain,
    createTime: timestamp(createTime),
  }
}
