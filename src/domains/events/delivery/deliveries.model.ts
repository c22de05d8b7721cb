import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { type DeliveryState, deliveryStates } from '../routing/delivery-states.model.ts'

export { type DeliveryState, deliveryStates }

/**
 * Results of an attempt. `delivered`: the sink accepted the event. `refused`: the sink returned another status. Other results are
 * reasons why there was no status.
 */
export const attemptResults = [
  'delivered',
  'refused',
  'gone',
  'slowed',
  'timeout',
  'unreachable',
  'private-address',
  'insecure',
  'bad-url',
] as const
export type AttemptResult = (typeof attemptResults)[number]

/** Pending delivery with the fields for sending. `nextTime` is the time of the next attempt, or empty. */
export type Waiting = {
  /** Number of the delivery's row. 0 if the event was not tried, because it then has no row. */
  id: number
  /** Position of an event without a row. 0 if the delivery has a row. */
  position: number
  event: number
  subject: string
  attempts: number
  nextTime: string
  createTime: string
}

/** Settings and state of a subscription. Times that are not set are empty. */
export type Settings = {
  uid: string
  types: readonly string[]
  paused: boolean
  pauseReason: string
  waiting: number
  /** Time of the first event that has no delivery row. */
  behindTime: string
  givenUp: number
  failures: number
  blockedUntil: string
  oldSecretExpireTime: string
}

/** Settings of a subscription in events. Each kind of change has a separate kind of event. */
export type ShownSettings = Pick<Settings, 'uid' | 'types' | 'paused' | 'pauseReason'>
export const changedSettings = kindOf<ShownSettings>('changed')
export const pausedSettings = kindOf<ShownSettings>('paused')
export const resumedSettings = kindOf<ShownSettings>('resumed')
export const newSecretSettings = kindOf<ShownSettings>('new-secret')

/** Event that tests a sink. */
export type TestEvent = { subscription: string; message: string }
export const toTestEventResource = kindOf<TestEvent>('test')

/** Delivery of an event to a subscription, as shown in the API. */
export type Delivery = {
  /** Uid of the subscription, a slash, and the delivery's number in 16 hex digits. */
  uid: string
  /** Number of the event. */
  event: number
  state: DeliveryState
  /** ID of the event. `eventId` and the type are empty if the event has expired. */
  eventId: string
  type: string
  subject: string
  attemptCount: number
  /** Time of the next attempt. Empty if no attempt is scheduled for a later time. */
  nextAttemptTime: string
  lastAttempt: DeliveryAttempt | undefined
  createTime: string
}

export type DeliveryAttempt = { result: AttemptResult; status: number; durationMs: number; createTime: string }

export const deliveryType = 'events.pinfold.dev/Delivery'
export const deliveryFields = { uid: { column: 'uid', sort: true } } as const satisfies Fields<Delivery>

export const maxTypes = 20
export const maxTypeLength = 200
export const maxRedeliveries = 100
export const maxAttemptsShown = 100
/** Limit on the positions that are read to count the pending events of a queue. */
export const maxCountedBehind = 10_000
/**
 * Limit on the stored deliveries of a subscription, separately for delivered and for given-up ones. Old deliveries are deleted
 * after each `every` ended deliveries.
 */
export const kept = { deliveries: 10_000, every: 500, trimmed: 1000 }
export const defaultOverlapMs = 24 * 60 * 60 * 1000
export const maxOverlapMs = 7 * defaultOverlapMs

export function deliveryUid(subscription: string, id: number): string {
  return `${subscription}/${id.toString(16).padStart(16, '0')}`
}

/** Subscription and number in the uid of a delivery. Returns undefined for an invalid uid. */
export function readDeliveryUid(uid: string): { subscription: string; id: number } | undefined {
  const slash = uid.lastIndexOf('/')
  const id = Number.parseInt(uid.slice(slash + 1), 16)
  return slash > 0 && Number.isSafeInteger(id) ? { subscription: uid.slice(0, slash), id } : undefined
}

/** Event with all fields that are sent. */
export type Payload = {
  id: number
  uuid: string
  type: string
  audience: string
  source: string
  subject: string
  group: string
  actor: string
  bodyType: string
  body: string
  extensions: string
  createTime: string
}
