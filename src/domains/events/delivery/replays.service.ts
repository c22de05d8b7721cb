// Sends the events of a time range again. One request creates at most as many deliveries as may be pending. The request returns
// the position at which the next one continues.
import type { App, Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { found, invalid } from '#lib/errors.ts'
import { listedUpTo, type Page } from '#lib/lists/paging.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { bumpQueues } from '../routing/queues.store.ts'
import { insertDeliveries, lockRouting, type NewDelivery } from '../routing/routing.store.ts'
import { wants } from '../routing/type-patterns.ts'
import { subscriptionType } from '../subscriptions/subscriptions.model.ts'
import * as store from './deliveries.store.ts'
import { capacityFor, refuseOverLimit } from './delivery-limits.service.ts'

/** Limits on the events that one request reads, and that one transaction reads. */
const bounds = { events: 20_000, eventsAtOnce: 500 }
/** Limit in milliseconds on the time between the start of a request and its commit, with a margin. */
const disorderMs = 2 * 60_000

export type ReplayTime = { from: string; to: string }

/**
 * Replays events in batches with separate commits. If a request fails and is repeated, some events are sent twice. `next` is the
 * token of the next page. It is empty after the last page.
 */
export async function replayEvents(
  call: Call,
  uid: string,
  time: ReplayTime,
  page: Page,
): Promise<{ count: number; next: string }> {
  if (time.to <= time.from) throw invalid({ field: 'end_time', description: 'must be after start_time' })
  const { db, events } = call.app
  await findSubscriber(db, uid)
  let position = page.after ? Number(page.after.value) : await store.positionBefore(db, around(time.from, -disorderMs))
  let [count, looked, isOver] = [0, 0, false]
  while (!isOver && looked < bounds.events) {
    const some = await db.tx((tx) => replaySome(tx, call, uid, { ...time, position, isFirst: count === 0 }), {
      isolation: 'rowLocks',
    })
    if (some.count > 0) events.queued.notify()
    count += some.count
    looked += some.looked
    ;({ position, isOver } = some)
    if (some.isFull) break
  }
  call.log.info('events replayed', { uid, count, isOver })
  return {
    count,
    next: listedUpTo(call, page, { items: [], total: 0, last: isOver ? undefined : String(position) }).next,
  }
}

type Replayed = { count: number; looked: number; position: number; isFull: boolean; isOver: boolean }

/** Stores deliveries of the events after `position`. Throws if the limits allow no delivery at all. */
async function replaySome(
  tx: Tx,
  call: Call,
  uid: string,
  { from, to, position, isFirst }: ReplayTime & { position: number; isFirst: boolean },
): Promise<Replayed> {
  await lockRouting(tx)
  const subscriber = await findSubscriber(tx, uid)
  const batch = await store.eventsAfter(tx, position, bounds.eventsAtOnce)
  const wanted = batch.filter((event) => {
    const inTime = event.createTime >= from && event.createTime < to
    return inTime && isFor(call.app, subscriber, event)
  })
  const { app } = call
  const room = await capacityFor(app, tx, { ...subscriber, wanted: wanted.length })
  if (room === 0 && wanted.length > 0 && isFirst) return refuseOverLimit(app, tx, { ...subscriber, wanted: 1 })
  const some = wanted.slice(0, room)
  const toDelivery = ({ id, subject }: store.OrderedEvent): NewDelivery => {
    return { subscription: subscriber.id, event: id, subject, createTime: call.now }
  }
  await insertDeliveries(tx, some.map(toDelivery))
  if (some.length > 0) await bumpQueues(tx, [subscriber.id], { deliveries: some.length }, '', call.now)
  const isFull = some.length < wanted.length
  const last = isFull ? some.at(-1) : batch.at(-1)
  const until = around(to, disorderMs)
  const isOver =
    !isFull && !(batch.length === bounds.eventsAtOnce && batch.some(({ createTime }) => createTime < until))
  return { count: some.length, looked: batch.length, position: last?.position ?? position, isFull, isOver }
}

function isFor(app: Pick<App, 'vendor'>, subscriber: store.Subscriber, event: store.OrderedEvent): boolean {
  return event.audience === 'CUSTOMER' && isAtOrBelow(event.group, subscriber.group) && wants(app, subscriber, event)
}

async function findSubscriber(
  reader: Parameters<typeof store.findSettings>[0],
  uid: string,
): Promise<store.Subscriber> {
  return found(await store.findSettings(reader, uid), subscriptionType, uid).subscriber
}

const around = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString()
