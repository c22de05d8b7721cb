import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** An address that receives the events of a group and everything below it. It never changes. */
export type Subscription = {
  /** Its parent is the group. */
  uid: string
  sink: string
  createTime: string
  updateTime: string
}

export const aSubscription = kindOf<Subscription>('subscription')

export const subscriptionType = 'events.pinfold.dev/Subscription'

export const subscriptionFields = {
  uid: { column: 'uid', sort: true },
  sink: { column: 'sink', required: true, maxLength: 2048 },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Subscription>
