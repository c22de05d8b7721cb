// Subscriptions that are behind. A burst of events, or events for a subscription that has deliveries pending, are not stored
// as deliveries: the subscription keeps only its position in the order of events. The owner of its queue stores the next
// few deliveries when it is about to send them. So a sink that never answers costs one row and not one row for each event,
// and nothing is lost for as long as the events themselves are kept.
import type { App } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import * as store from './behind.store.ts'
import { positionBefore } from './deliveries.store.ts'
import { mostWaiting, roomFor } from './room.service.ts'
import { insertDeliveries, lockRouting, type NewDelivery, type Subscriber } from './routing.store.ts'
import { wants } from './wants.ts'

/**
 * The pending deliveries up to which a queue that catches up gets more, the deliveries that one transaction stores, and the
 * positions and events that it reads.
 */
const bounds = { waiting: mostWaiting, deliveries: 250, positions: 1000, events: 250 }

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

/** `isBehind` when there are more events to store deliveries of; `isFull` when others have to go out first. */
export type CaughtUp = { added: number; isBehind: boolean; isFull: boolean }

/** Stores the next deliveries of a queue of the node that is behind. */
export async function catchUp(
  app: Pick<App, 'vendor' | 'config'>,
  tx: Tx,
  subscription: number,
  node: string,
  most: Partial<typeof bounds> = bounds,
): Promise<CaughtUp> {
  const { waiting, deliveries: wanted, positions, events: limit } = { ...bounds, ...most }
  const { position } = await lockRouting(tx)
  const follower = await store.findFollower(tx, subscription, node)
  if (!follower) return { added: 0, isBehind: false, isFull: false }
  const { behind, uid, group } = follower
  const room = await roomFor(app, tx, { id: subscription, uid, wanted, most: waiting })
  if (room === 0) return { added: 0, isBehind: true, isFull: true }
  const upTo = Math.min(behind + positions, position)
  const types = JSON.parse(follower.types) as string[]
  const events = await store.eventsBetween(tx, { after: behind, upTo, group }, limit)
  const matching = events.filter((event) => wants(app, { ...follower, types }, event))
  const next = matching.slice(0, room)
  const read = next.length < matching.length ? next.at(-1)! : events.length === limit ? events.at(-1)! : undefined
  const last = read ? read.position : await store.lastEmpty(tx, upTo, position)
  await insertDeliveries(
    tx,
    next.map(({ id, subject, createTime }) => ({ subscription, event: id, subject, createTime })),
  )
  await store.setBehind(tx, subscription, last < position ? last : 0)
  return { added: next.length, isBehind: last < position, isFull: false }
}

export type Ahead = {
  /** Up to here no event was found. */
  position: number
  isFound: boolean
  isEnd: boolean
  /** Subjects of the events that were passed over. */
  passed: string[]
}

/** Looks behind `after` for an event without a delivery whose subject has no delivery pending, in one bounded step. */
export async function lookAhead(
  app: Pick<App, 'vendor'>,
  reader: Reader,
  { subscription, node, after }: { subscription: number; node: string; after: number },
  hasPending: (subject: string) => boolean,
): Promise<Ahead> {
  const last = await store.lastPosition(reader)
  const follower = await store.findFollower(reader, subscription, node)
  if (!follower) return { position: after, isFound: true, isEnd: false, passed: [] }
  const from = Math.max(after, follower.behind)
  const upTo = Math.min(from + bounds.positions, last)
  const events = await store.eventsBetween(reader, { after: from, upTo, group: follower.group }, bounds.events)
  const types = JSON.parse(follower.types) as string[]
  const matching = events.filter((event) => wants(app, { ...follower, types }, event))
  const found = matching.find(({ subject }) => !hasPending(subject))
  if (found) return { position: found.position - 1, isFound: true, isEnd: false, passed: [] }
  const position = events.length === bounds.events ? events.at(-1)!.position : await store.lastEmpty(reader, upTo, last)
  return { position, isFound: false, isEnd: position >= last, passed: matching.map(({ subject }) => subject) }
}

/** A sink that has failed for so long does not get what is as old; it can still be asked for with ReplayEvents. */
export async function passOverBefore(tx: Tx, subscription: number, time: string): Promise<void> {
  await lockRouting(tx)
  await store.passOver(tx, subscription, await positionBefore(tx, time))
}
