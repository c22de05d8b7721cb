// Limits on stored pending deliveries. If an event exceeds a limit, its delivery is stored later. The event is not lost, because
// it keeps its position in the order of events.
import type { App } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { limitsOf, requireCapacity } from '#domains/iam/groups/limits.service.ts'
import { failedPrecondition } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import * as store from './backlog.store.ts'

/**
 * Number of pending deliveries that each subscription can always have. The quota of the organization does not limit them, so no
 * subscription blocks another.
 */
export const guaranteedDeliveries = 16
/** Limit on the pending deliveries of a subscription. */
export const mostWaiting = 10_000

/** Number of stored pending deliveries of an organization. */
export function pendingOf(reader: Reader, organization: string): Promise<number> {
  return store.countPending(reader, organization)
}

type DeliveryRequest = { id: number; uid: string; wanted: number; most?: number }

/** Number of requested deliveries that the limits allow. The number is exact if `lockRouting` was called first. */
export async function capacityFor(app: Pick<App, 'config'>, tx: Reader, asked: DeliveryRequest): Promise<number> {
  const { id, uid, wanted, most = mostWaiting } = asked
  const waiting = await store.countWaiting(tx, id, most)
  const sure = Math.min(guaranteedDeliveries, most) - waiting
  if (wanted <= Math.max(sure, 0)) return wanted
  const organization = rootOf(uid)
  const { pending_deliveries: limit } = await limitsOf(tx, { app }, organization)
  const used = limit === Number.POSITIVE_INFINITY ? 0 : await store.countPending(tx, organization, limit)
  return Math.max(sure, Math.min(wanted, most - waiting, limit - used), 0)
}

/** Throws if the limits do not allow all requested deliveries. Call `lockRouting` first. */
export async function requireCapacityFor(app: Pick<App, 'config'>, tx: Tx, asked: DeliveryRequest): Promise<void> {
  if ((await capacityFor(app, tx, asked)) < asked.wanted) await refuseOverLimit(app, tx, asked)
}

/** Throws with the limit that was reached. This is the limit of the subscription, or the quota of its organization. */
export async function refuseOverLimit(
  app: Pick<App, 'config'>,
  tx: Tx,
  { id, uid, wanted }: DeliveryRequest,
): Promise<never> {
  if ((await store.countWaiting(tx, id, mostWaiting)) + wanted <= mostWaiting) {
    const organization = rootOf(uid)
    const used = await pendingOf(tx, organization)
    requireCapacity(await limitsOf(tx, { app }, organization), 'pending_deliveries', used, wanted)
  }
  throw failedPrecondition({
    type: 'QUEUE_FULL',
    subject: uid,
    description: `no delivery was added, because the subscription would have more than ${mostWaiting} pending deliveries; try again when some have been sent`,
  })
}
