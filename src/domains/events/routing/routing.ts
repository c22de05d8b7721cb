// Routes events from the outbox to the queues of subscriptions. After a commit an event is visible. Then routing assigns its
// position in the global order. Each subscription with the event keeps the position after which its untried events begin. A
// delivery row is stored after the first attempt.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { lineage } from '#lib/uid.ts'
import { bumpQueues, lockQueues, type OwnedQueue, type QueueAddition } from './queues.store.ts'
import * as store from './routing.store.ts'
import { wants } from './type-patterns.ts'

/** Limit on the events that one transaction routes. A larger transaction would delay others. */
const mostEvents = 200

export type Routed = {
  events: number
  /** True if there may be more events to route. */
  isMore: boolean
  /** Queues that this server owns and that got new events. */
  queues: OwnedQueue[]
}

/** Part of the application that routing uses. */
type Routing = Pick<App, 'vendor'>

/**
 * Routes the oldest events. If queues without an owner get events, the server `node` takes them. If `node` is empty, these queues
 * stay without an owner.
 */
export async function route(app: Routing, tx: Tx, now: string, node: string, most = mostEvents): Promise<Routed> {
  // Position 0 means that a queue has no position, so the position of the first event must be above 1.
  const position = Math.max((await store.lockRouting(tx)).position, 1)
  const events = await store.unroutedEvents(tx, most)
  if (events.length === 0) return { events: 0, isMore: false, queues: [] }
  await store.orderEvents(
    tx,
    position,
    events.map(({ id }) => id),
  )
  const wanting = await subscribersOf(app, tx, events)
  await lockQueues(
    tx,
    wanting.map(({ id }) => id),
  )
  const queues: OwnedQueue[] = []
  const bump = async (some: readonly store.Subscriber[], got: QueueAddition): Promise<void> => {
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
 * Routes all visible events. So a subscription that the same transaction adds gets only later events. Call `wakeConsumers` with
 * the result after the commit.
 */
export async function routeEverything(app: Routing, tx: Tx, now: string): Promise<number> {
  let events = 0
  for (;;) {
    const routed = await route(app, tx, now, '')
    events += routed.events
    if (!routed.isMore) return events
  }
}

/** Routes most events before a transaction begins, so that `routeEverything` has at most one batch left. */
export async function routeBacklog(app: Routing & Pick<App, 'db' | 'events'>, now: string): Promise<void> {
  for (;;) {
    const { events, isMore } = await app.db.tx((tx) => route(app, tx, now, ''), { isolation: 'rowLocks' })
    wakeConsumers(app, events)
    if (!isMore) return
  }
}

/** Wakes queues and streams after a caller without queues has routed events. */
export function wakeConsumers({ events: { routed, queued } }: Pick<App, 'events'>, events: number): void {
  if (events === 0) return
  routed.notify()
  queued.notify()
}

/** Subscriptions that receive at least one of the events. */
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
