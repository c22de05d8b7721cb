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

/**
 * The subscription as it is shown to whoever may not change it: where its events go, without what lets others in there. A
 * user name, a password, what is given to a parameter and a fragment may all be secrets.
 */
export function withoutSecrets(subscription: Subscription): Subscription {
  const { sink } = subscription
  if (!URL.canParse(sink)) return { ...subscription, sink: '' }
  const { protocol, host, pathname, search } = new URL(sink)
  const parameters = search.slice(1).split('&')
  const named = parameters.map((one) => (one.includes('=') ? `${one.slice(0, one.indexOf('='))}=***` : '***'))
  return { ...subscription, sink: `${protocol}//${host}${pathname}${search === '' ? '' : `?${named.join('&')}`}` }
}
