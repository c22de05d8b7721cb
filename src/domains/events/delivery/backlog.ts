// Reads events that have no delivery row yet. Routing stores only the position of a subscription in the order of events. The
// server that owns the queue reads later events into memory, shortly before it sends them. So a sink that never responds causes
// one row, not one row for each event. All events stay available until they expire.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { wants } from '../routing/type-patterns.ts'
import * as store from './backlog.store.ts'
import type { Waiting } from './deliveries.model.ts'
import type { OrderedEvent } from './deliveries.store.ts'

/** Limits of one read on the positions and on the events. */
const bounds = { positions: 1000, events: 250 }

/** Events for the subscription up to `position`. `isEnd` is true if there are no later events. */
export type Read = { events: Waiting[]; position: number; isEnd: boolean }

type ReadFrom = { subscription: number; node: string; after: number }

/** Reads the next events of a queue that the server owns, within the limits of one read. */
export async function readEvents(
  app: Pick<App, 'vendor'>,
  reader: Reader,
  { subscription, node, after }: ReadFrom,
  most: Partial<typeof bounds> = bounds,
): Promise<Read> {
  const { positions, events: limit } = { ...bounds, ...most }
  // The last position is read before the events. So all events up to this position are visible.
  const last = await store.lastPosition(reader)
  const follower = await store.findFollower(reader, subscription, node)
  if (!follower) return { events: [], position: after, isEnd: true }
  const upTo = Math.min(after + positions, last)
  const events = await store.eventsBetween(reader, { after, upTo, group: follower.group }, limit)
  const position =
    events.length === limit ? events.at(-1)!.position : await store.lastEmpty(reader, Math.max(upTo, after), last)
  return { events: matching(app, follower, events), position, isEnd: position >= last }
}

/** Reads the next events of one subject, up to `upTo`. */
export async function readSubject(
  app: Pick<App, 'vendor'>,
  reader: Reader,
  { subscription, node, after, subject, upTo }: ReadFrom & { subject: string; upTo: number },
  limit: number,
): Promise<Read> {
  const follower = await store.findFollower(reader, subscription, node)
  if (!follower) return { events: [], position: after, isEnd: true }
  const { group } = follower
  const events = await store.eventsOfSubject(reader, { subject, after, upTo, group }, limit)
  const isEnd = events.length < limit
  return { events: matching(app, follower, events), position: isEnd ? upTo : events.at(-1)!.position, isEnd }
}

function matching(app: Pick<App, 'vendor'>, follower: store.Follower, events: readonly OrderedEvent[]): Waiting[] {
  const types = JSON.parse(follower.types) as string[]
  return events
    .filter((event) => wants(app, { ...follower, types }, event))
    .map(({ id, position, subject, createTime }) => {
      return { id: 0, position, event: id, subject, attempts: 0, nextTime: '', createTime }
    })
}
