import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** URL that receives the events of a group and everything below it. It never changes. */
export type Subscription = {
  /** Its parent is the group. */
  uid: string
  sink: string
  createTime: string
  updateTime: string
}

export const toSubscriptionResource = kindOf<Subscription>('subscription')

export const subscriptionType = 'events.pinfold.dev/Subscription'

export const subscriptionFields = {
  uid: { column: 'uid', sort: true },
  sink: { column: 'sink', required: true, maxLength: 2048 },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Subscription>

/**
 * Subscription for callers who cannot change it, with the sink but without its secrets. User name, password, parameter values and
 * fragment may be secrets.
 */
export function withoutSecrets(subscription: Subscription): Subscription {
  const { sink } = subscription
  if (!URL.canParse(sink)) return { ...subscription, sink: '' }
  const { protocol, host, pathname, search } = new URL(sink)
  const parameters = search.slice(1).split('&')
  const named = parameters.map((one) => (one.includes('=') ? `${one.slice(0, one.indexOf('='))}=***` : '***'))
  return { ...subscription, sink: `${protocol}//${host}${pathname}${search === '' ? '' : `?${named.join('&')}`}` }
}
