// From the outbox to the queues of the subscriptions. A commit makes an event visible; routing gives it its position in the
// one order of events. Each subscription that it concerns keeps the position behind which its events begin; no row is stored
// for it before an attempt has ended.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { lineage } from '#lib/uid.ts'
import { bumpQueues, type Got, type OwnedQueue } from './queues.store.ts'
import * as store from './routing.store.ts'
import { wants } from './type-patterns.ts'

/** Events that one transaction routes; more than one works through at once would only make others wait. */
const mostEvents = 200

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
export async function route(app: Routing, tx: Tx, now: string, node: string, most = mostEvents): Promise<Routed> {
  // A queue at position 0 has no position, so the first event has a higher one than 1.
  const position = Math.max((await store.lockRouting(tx)).position, 1)
  const events = await store.unroutedEvents(tx, most)
  if (events.length === 0) return { events: 0, isMore: false, queues: [] }
  await store.orderEvents(
    tx,
    position,
    events.map(({ id }) => id),
  )
  const wanting = await subscribersOf(app, tx, events)
  const queues: OwnedQueue[] = []
  const bump = async (some: readonly store.Subscriber[], got: Got): Promise<void> => {
    const ids = some.map(({ id }) => id)
    if (ids.length > 0) queues.push(...(await bumpQueues(tx, ids, got, node, now)))
  }
  await bump(
    wanting.filter(({ behind }) => behind === 0),
    { behind: position },
  )
  await bump(
    wanting.filter(({ behind }) => behind > 0),
    'more',
  )
  const mine = queues.filter(({ owner }) => owner === node && node !== '')
  return { events: events.length, isMore: events.length === most, queues: mine }
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

/** The subscriptions that want one of the events. */
async function subscribersOf(
  app: Routing,
  tx: Tx,
  events: readonly store.UnroutedEvent[],
): Promise<store.Subscriber[]> {
  const visible = events.filter(({ audience }) => audience === 'CUSTOMER')
  const groups = new Set(visible.flatMap(({ group }) => lineage(group)))
  const subscribers = groups.size === 0 ? [] : await store.subscribersAt(tx, [...groups])
  const parsed = subscribers.map((one) => ({ ...one, types: JSON.parse(one.types) as string[] }))
  const byGroup = Map.groupBy(parsed, ({ group }) => group)
  const wanting = new Set<number>()
  for (const event of visible) {
    for (const group of lineage(event.group)) {
      for (const one of byGroup.get(group) ?? []) {
        if (!wanting.has(one.id) && wants(app, one, event)) wanting.add(one.id)
      }
    }
  }
  return subscribers.filter(({ id }) => wanting.has(id))
}
