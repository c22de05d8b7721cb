import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { type DeliveryState, deliveryStates } from '../routing/delivery-states.model.ts'

export { type DeliveryState, deliveryStates }

/** How an attempt ended: `delivered`, `refused` by a status, or what kept it from getting one. */
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

/** A delivery that waits, as whoever sends it needs it. `nextTime` is empty, or when to try again. */
export type Waiting = {
  /** 0 for an event that has not been tried: it has no row yet. */
  id: number
  /** The position of such an event; 0 for a row. */
  position: number
  event: number
  subject: string
  attempts: number
  nextTime: string
  createTime: string
}

/** How a subscription is served. Times are empty where there is none. */
export type Settings = {
  uid: string
  types: readonly string[]
  paused: boolean
  pauseReason: string
  waiting: number
  /** When the first event happened that has no delivery yet, since so many others wait. */
  behindTime: string
  givenUp: number
  failures: number
  blockedUntil: string
  oldSecretExpireTime: string
}

/** What others are told of a change, and what kind of change it was. */
export type ShownSettings = Pick<Settings, 'uid' | 'types' | 'paused' | 'pauseReason'>
export const changedSettings = kindOf<ShownSettings>('changed')
export const pausedSettings = kindOf<ShownSettings>('paused')
export const resumedSettings = kindOf<ShownSettings>('resumed')
export const newSecretSettings = kindOf<ShownSettings>('new-secret')

/** What is sent to try a sink. */
export type TestEvent = { subscription: string; message: string }
export const aTestEvent = kindOf<TestEvent>('test')

/** One event for one subscription, as its owner sees it. */
export type Delivery = {
  /** The uid of the subscription, a slash and its number in 16 hex digits. */
  uid: string
  /** The number of the event. */
  event: number
  state: DeliveryState
  /** Empty, like the type, when the event is not kept any more. */
  eventId: string
  type: string
  subject: string
  attemptCount: number
  /** Empty when it does not wait for a time. */
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
/** Positions behind that of a queue among which its events are counted as waiting. */
export const maxCountedBehind = 10_000
/** Delivered deliveries of a subscription that are kept, and as many that were given up; `every` is how many end between trims. */
export const kept = { deliveries: 10_000, every: 500, trimmed: 1000 }
export const defaultOverlapMs = 24 * 60 * 60 * 1000
export const maxOverlapMs = 7 * defaultOverlapMs

export function deliveryUid(subscription: string, id: number): string {
  return `${subscription}/${id.toString(16).padStart(16, '0')}`
}

/** The subscription and number that a delivery's uid names; `undefined` for one that cannot be. */
export function readDeliveryUid(uid: string): { subscription: string; id: number } | undefined {
  const slash = uid.lastIndexOf('/')
  const id = Number.parseInt(uid.slice(slash + 1), 16)
  return slash > 0 && Number.isSafeInteger(id) ? { subscription: uid.slice(0, slash), id } : undefined
}

/** An event as it is sent. */
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
