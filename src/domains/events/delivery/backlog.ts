// Events after the position of a queue. Routing stores no delivery: the subscription keeps only its position in the order of
// events. The owner of its queue reads later events into memory, a few ahead of sending. So a sink that never responds costs one
// row instead of one row for each event. Nothing is lost while the events themselves are kept.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { wants } from '../routing/type-patterns.ts'
import * as store from './backlog.store.ts'
import type { Waiting } from './deliveries.model.ts'
import type { OrderedEvent } from './deliveries.store.ts'

/** Most positions and events that one step reads. */
const bounds = { positions: 1000, events: 250 }

/** Wanted events up to `position`. `isEnd` is true after the last event. */
export type Read = { events: Waiting[]; position: number; isEnd: boolean }

type Place = { subscription: number; node: string; after: number }

/** Reads the next events of a queue that the node owns, in one bounded step. */
export async function readEvents(
  app: Pick<App, 'vendor'>,
  reader: Reader,
  { subscription, node, after }: Place,
  most: Partial<typeof bounds> = bounds,
): Promise<Read> {
  const { positions, events: limit } = { ...bounds, ...most }
  // Read before the events, so that all of them up to here are visible.
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
  { subscription, node, after, subject, upTo }: Place & { subject: string; upTo: number },
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
