// From the outbox to the queues of the subscriptions. A commit makes an event visible; routing gives it its position in the
// one order of events and makes a delivery for each subscription that it concerns.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { lineage } from '#lib/uid.ts'
import { matchesType } from '../subscriptions/type-patterns.ts'
import { bumpQueues, type OwnedQueue } from './queues.store.ts'
import * as store from './routing.store.ts'

/** How many events one transaction routes; more than one works through at once would only make others wait. */
export const routeBatch = 200

export type Routed = {
  events: number
  /** The queues that have something new and are the node's. */
  queues: OwnedQueue[]
}

/** What of the application routing goes by. */
type Routing = Pick<App, 'vendor'>

/** Routes the oldest events. `node` takes the queues of nobody that get something, unless it is empty. */
export async function route(app: Routing, tx: Tx, now: string, node: string, limit = routeBatch): Promise<Routed> {
  const { position } = await store.lockRouting(tx)
  const events = await store.unroutedEvents(tx, limit)
  if (events.length === 0) return { events: 0, queues: [] }
  await store.orderEvents(
    tx,
    position,
    events.map(({ id }) => id),
  )
  const deliveries = await deliveriesOf(app, tx, events)
  await store.insertDeliveries(tx, deliveries)
  const subscriptions = [...new Set(deliveries.map(({ subscription }) => subscription))].sort((a, b) => a - b)
  const queues = subscriptions.length === 0 ? [] : await bumpQueues(tx, subscriptions, node, now)
  return { events: events.length, queues: queues.filter(({ owner }) => owner === node && node !== '') }
}

/** Routes all that is there, so that what is added to the transaction now gets only what commits after it. */
export async function routeEverything(app: Routing, tx: Tx, now: string): Promise<void> {
  while ((await route(app, tx, now, '')).events === routeBatch) {
    // The next batch.
  }
}

/** Outside of any transaction: leaves at most one batch for `routeEverything`, however much there is. */
export async function routeBacklog(app: Pick<App, 'db' | 'vendor'>, now: string): Promise<void> {
  const routed = () => app.db.tx((tx) => route(app, tx, now, ''), { isolation: 'rowLocks' })
  while ((await routed()).events === routeBatch) {
    // The next batch.
  }
}

async function deliveriesOf(
  app: Routing,
  tx: Tx,
  events: readonly store.UnroutedEvent[],
): Promise<store.NewDelivery[]> {
  const visible = events.filter(({ audience }) => audience === 'CUSTOMER')
  const groups = new Set(visible.flatMap(({ group }) => lineage(group)))
  if (groups.size === 0) return []
  const subscribers = Map.groupBy(await store.subscribersAt(tx, [...groups]), ({ group }) => group)
  const patterns = new Map<string, readonly string[]>()
  const wants = ({ uid, types, vendor }: store.Subscriber, { type, subject }: store.UnroutedEvent): boolean => {
    let parsed = patterns.get(types)
    if (!parsed) {
      parsed = JSON.parse(types) as string[]
      patterns.set(types, parsed)
    }
    // What happens to a subscription is news for the others.
    return subject !== uid && matchesType(parsed, type, vendor || app.vendor?.token)
  }
  return visible.flatMap((event) =>
    lineage(event.group)
      .flatMap((group) => subscribers.get(group) ?? [])
      .filter((subscriber) => wants(subscriber, event))
      .map(({ id }) => ({ subscription: id, event: event.id, subject: event.subject, createTime: event.createTime })),
  )
}
