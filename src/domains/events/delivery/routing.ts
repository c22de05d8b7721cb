// From the outbox to the queues of the subscriptions. A commit makes an event visible; routing gives it its position in the
// one order of events. Each subscription that it concerns gets a delivery, or a position if it has no room for one.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { lineage } from '#lib/uid.ts'
import { withRoom } from './behind.ts'
import { bumpQueues, type Got, type OwnedQueue } from './queues.store.ts'
import { sureRoom } from './room.service.ts'
import * as store from './routing.store.ts'
import { wants } from './wants.ts'

/**
 * How much one transaction routes; more than one works through at once would only make others wait. Of an event that has
 * more deliveries all are made, which is as many as an organisation has subscriptions.
 */
const routeBatch = { events: 200, deliveries: 2000, waiting: sureRoom }

export type Routed = {
  events: number
  /** There may be more events to route. */
  isMore: boolean
  /** The queues that have something new and are the node's. */
  queues: OwnedQueue[]
}

/** What of the application routing goes by. */
type Routing = Pick<App, 'vendor'>

/** Routes the oldest events. `node` takes the queues of nobody that get something, unless it is empty. */
export async function route(app: Routing, tx: Tx, now: string, node: string, most = routeBatch): Promise<Routed> {
  const { position } = await store.lockRouting(tx)
  const oldest = await store.unroutedEvents(tx, most.events)
  if (oldest.length === 0) return { events: 0, isMore: false, queues: [] }
  const { events, subscribers, wanted, woken } = await deliveriesOf(app, tx, oldest, most.deliveries)
  await store.orderEvents(
    tx,
    position,
    events.map(({ id }) => id),
  )
  const { deliveries, counts, fallen } = await withRoom(tx, subscribers, wanted, most.waiting)
  await store.insertDeliveries(tx, deliveries)
  const queues: OwnedQueue[] = []
  const bump = async (subscriptions: readonly number[], got: Got) =>
    void queues.push(...(await bumpQueues(tx, subscriptions, got, node, now)))
  const byCount = Map.groupBy(counts.keys(), (subscription) => counts.get(subscription)!)
  for (const [count, subscriptions] of byCount) await bump(subscriptions, { deliveries: count })
  if (fallen.length > 0) await bump(fallen, { behind: position })
  if (woken.length > 0) await bump(woken, 'more')
  const isMore = oldest.length === most.events || events.length < oldest.length
  return { events: events.length, isMore, queues: queues.filter(({ owner }) => owner === node && node !== '') }
}

/**
 * Routes all that is there, so that what is added to the transaction now gets only what commits after it. Call `tellRouted`
 * with what it answers once that has committed.
 */
export async function routeEverything(app: Routing, tx: Tx, now: string): Promise<number> {
  let events = 0
  for (;;) {
    const routed = await route(app, tx, now, '')
    events += routed.events
    if (!routed.isMore) return events
  }
}

/** Outside of any transaction: leaves at most one batch for `routeEverything`, however much there is. */
export async function routeBacklog(app: Routing & Pick<App, 'db' | 'events'>, now: string): Promise<void> {
  for (;;) {
    const { events, isMore } = await app.db.tx((tx) => route(app, tx, now, ''), { isolation: 'rowLocks' })
    tellRouted(app, events)
    if (!isMore) return
  }
}

/** So many events were routed by somebody who serves no queue: whoever does, and whoever follows, has to look. */
export function tellRouted({ events: { routed, queued } }: Pick<App, 'events'>, events: number): void {
  if (events === 0) return
  routed.notify()
  queued.notify()
}

/**
 * The first of the events, at least one, and the deliveries that are wanted, not more than `most` if there are several events.
 * `woken` are the subscriptions that are behind and want one of the events.
 */
async function deliveriesOf(app: Routing, tx: Tx, oldest: readonly store.UnroutedEvent[], most: number) {
  const isVisible = ({ audience }: store.UnroutedEvent) => audience === 'CUSTOMER'
  const groups = new Set(oldest.filter(isVisible).flatMap(({ group }) => lineage(group)))
  const subscribers = groups.size === 0 ? [] : await store.subscribersAt(tx, [...groups])
  const parsed = subscribers.map((one) => ({ ...one, types: JSON.parse(one.types) as string[] }))
  const byGroup = Map.groupBy(parsed, ({ group }) => group)
  const events: store.UnroutedEvent[] = []
  const wanted: store.NewDelivery[] = []
  const woken = new Set<number>()
  for (const event of oldest) {
    const wanting = isVisible(event)
      ? lineage(event.group)
          .flatMap((group) => byGroup.get(group) ?? [])
          .filter((subscriber) => !woken.has(subscriber.id) && wants(app, subscriber, event))
      : []
    if (events.length > 0 && wanted.length + wanting.length > most) break
    events.push(event)
    const { id, subject, createTime } = event
    for (const one of wanting) {
      if (one.behind > 0) woken.add(one.id)
      else wanted.push({ subscription: one.id, event: id, subject, createTime })
    }
  }
  return { events, subscribers, wanted, woken: [...woken] }
}
