import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Sends the events of a group and its descendants to a URL. The URL never changes. */
export type Subscription = {
  /** Uid below the uid of the group. */
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
 * Subscription for callers who cannot change it. The sink is shown without user name, password, parameter values and fragment,
 * because these can be secrets.
 */
export function withoutSecrets<S extends Pick<Subscription, 'sink'>>(subscription: S): S {
  const { sink } = subscription
  if (!URL.canParse(sink)) return { ...subscription, sink: '' }
  const { protocol, host, pathname, search } = new URL(sink)
  const parameters = search.slice(1).split('&')
  const named = parameters.map((one) => (one.includes('=') ? `${one.slice(0, one.indexOf('='))}=***` : '***'))
  return { ...subscription, sink: `${protocol}//${host}${pathname}${search === '' ? '' : `?${named.join('&')}`}` }
}
