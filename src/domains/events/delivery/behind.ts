// What waits for one subscription has a bound. Whoever has so much waiting that more would only lie there falls behind: of
// what happens then there is no delivery, only the position of the last event that has one. The owner of the queue makes
// the others, some at a time, as what was before them goes out. So a hundred sinks that never answer cost a row each and
// no row for each event, and nothing is lost that the events themselves are kept for.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import * as store from './behind.store.ts'
import { positionBefore } from './deliveries.store.ts'
import { insertDeliveries, lockRouting, type NewDelivery, type Subscriber } from './routing.store.ts'
import { wants } from './wants.ts'

/** With so many that wait a subscription falls behind. */
export const mostRouted = 500
/**
 * Subjects that fail keep deliveries waiting while others go out; with so many of those the others wait too. And how many
 * events one transaction looks at, and of how many it makes deliveries.
 */
const bounds = { waiting: 10_000, positions: 1000, deliveries: 250 }

/** Those of `wanted` that there is room for, of whom there are how many, and who has fallen behind. */
export async function withRoom(
  tx: Tx,
  subscribers: readonly Pick<Subscriber, 'id' | 'room'>[],
  wanted: readonly NewDelivery[],
  most: number,
): Promise<{ deliveries: NewDelivery[]; counts: Map<number, number>; fallen: number[] }> {
  const rooms = new Map(subscribers.map(({ id, room }) => [id, room]))
  const counts = new Map<number, number>()
  for (const { subscription } of wanted) counts.set(subscription, (counts.get(subscription) ?? 0) + 1)
  const fallen = new Set<number>()
  for (const [id, count] of counts) {
    if (count <= rooms.get(id)!) continue
    const room = most - (await store.countWaiting(tx, id, most))
    if (count <= room) await store.setRoom(tx, id, room)
    else fallen.add(id)
  }
  for (const id of fallen) counts.delete(id)
  return {
    deliveries: wanted.filter(({ subscription }) => !fallen.has(subscription)),
    counts,
    fallen: [...fallen],
  }
}

/** Whether deliveries were made, and whether there is more to make of; `isFull` when others have to go out first. */
export type CaughtUp = { added: number; isBehind: boolean; isFull: boolean }

/** Makes the next deliveries of a queue of the node that is behind. */
export async function catchUp(
  app: Pick<App, 'vendor'>,
  tx: Tx,
  subscription: number,
  node: string,
  most = bounds,
): Promise<CaughtUp> {
  const { position } = await lockRouting(tx)
  const follower = await store.findFollower(tx, subscription, node)
  if (!follower) return { added: 0, isBehind: false, isFull: false }
  if ((await store.countWaiting(tx, subscription, most.waiting)) >= most.waiting) {
    return { added: 0, isBehind: true, isFull: true }
  }
  const { behind, group } = follower
  const upTo = Math.min(behind + most.positions, position)
  const types = JSON.parse(follower.types) as string[]
  const events = await store.eventsBetween(tx, { after: behind, upTo, group }, most.deliveries)
  const deliveries = events
    .filter((event) => wants(app, { ...follower, types }, event))
    .map(({ id, subject, createTime }) => ({ subscription, event: id, subject, createTime }))
  const last = events.length === most.deliveries ? events.at(-1)!.position : await store.lastEmpty(tx, upTo, position)
  await insertDeliveries(tx, deliveries)
  await store.setBehind(tx, subscription, last < position ? last : 0)
  return { added: deliveries.length, isBehind: last < position, isFull: false }
}

/** A sink that has failed for so long does not get what is as old; it can still be asked for with ReplayEvents. */
export async function passOverBefore(tx: Tx, subscription: number, time: string): Promise<void> {
  await lockRouting(tx)
  await store.passOver(tx, subscription, await positionBefore(tx, time))
}
