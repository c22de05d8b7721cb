// Events of the registry protocol: pushes, pulls, deletions and refused requests, with their callers.
import type { App, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { createBatchWriter } from '#lib/batches/batch-writer.ts'
import { type Cause, pushTokenIssuer } from '#lib/cause.ts'
import type { Resource } from '#lib/events/event-body.ts'
import { rootOf } from '#lib/uid.ts'
import { emit, type NewEvent, newEvent, queueEvents } from './emit.ts'
import {
  type Audience,
  type Deleted,
  type EventRepo,
  type Origin,
  type Pulled,
  type Pushed,
  type RegistryEvents,
  type Transfer,
  toContentDeletionResource,
  toPullResource,
  toPushResource,
} from './registry-events.model.ts'

export type { Origin, PolicyVerdict, Pulled, Pushed } from './registry-events.model.ts'

type Table = Pick<App, 'eventTable'>

/** Queues the event of a push, in the transaction that stores its content. */
export async function emitPush(
  tx: Tx,
  { app, cause }: Pick<Work, 'app' | 'cause'>,
  repo: EventRepo,
  origin: Origin,
  pushed: Pushed,
): Promise<void> {
  await queueEvents(tx, app, pushEvent(app, cause, repo, origin, pushed))
}

/** Queues the event of a deletion at the registry. */
export async function emitDeletion(
  tx: Tx,
  work: Pick<Work, 'app' | 'cause'>,
  repo: EventRepo,
  origin: Origin,
  what: Omit<Deleted, 'repo'>,
): Promise<void> {
  await emit(tx, work, 'control.registry.content.deleted', {
    subject: repo.uid,
    group: repo.group,
    resource: toContentDeletionResource({ repo, ...what }),
    source: origin.host,
    extensions: { digest: what.digest },
  })
}

/** Most events in one commit. With SQLite, a commit blocks the whole server, also reads. So commits are few and short. */
const perCommit = 500
/**
 * Most events that wait to be written. If there are more, the database is too slow and events are dropped. Pulls never wait for
 * events.
 */
const maxWaiting = 20_000

/** Most groups for which dropped events are counted between two writes. */
const maxDropping = 10_000

/** Kinds of events that anyone can cause in any number. Each kind is written only if a subscription or stream wants it. */
export type OnDemandEvent = 'pulls' | 'refused pushes'
type Waiting = { kind: OnDemandEvent; group: string; now: string; make: () => NewEvent }

export type RegistryEventsReport = {
  /** Reports events that could not be written and are lost. */
  failed(error: unknown): void
  /** Reports the number of wanted events that were dropped. Called with each write, even if the number is 0. */
  dropped(kind: OnDemandEvent, count: number): void
}

/**
 * Creates the collector of registry events. `perMinute` returns the most events of each kind for one organization in a minute.
 */
export function createRegistryEvents(
  app: Pick<App, 'db' | 'events' | 'eventTable'>,
  audiences: Record<OnDemandEvent, Audience>,
  perMinute: () => number,
  report: RegistryEventsReport,
): RegistryEvents {
  const share = createShare(perMinute)
  const isWanted = ({ kind, group }: Pick<Waiting, 'kind' | 'group'>) => audiences[kind].includes(group)
  const drops = createDrops(isWanted, report)
  let waiting: Waiting[] = []

  const note = (one: Waiting): void => {
    if (audiences[one.kind].isEmpty(one.group)) return
    if (waiting.length < maxWaiting && share.take(one)) waiting.push(one)
    else drops.add(one)
  }
  const writer = createBatchWriter<Waiting>({
    take() {
      const all = waiting
      waiting = []
      return all
    },
    putBack(left) {
      const all = [...left, ...waiting]
      waiting = all.slice(0, maxWaiting)
      for (const one of all.slice(maxWaiting)) drops.add(one)
    },
    async write(batch) {
      const [events, unwanted]: [NewEvent[], Waiting[]] = [[], []]
      for (const one of batch) {
        if (await isWanted(one)) events.push(one.make())
        else unwanted.push(one)
      }
      if (events.length > 0) await app.db.tx((tx) => queueEvents(tx, app, ...events), { durability: 'later' })
      for (const one of unwanted) share.giveBack(one)
      return events.length
    },
    perBatch: perCommit,
    failed: report.failed,
  })
  return {
    pulled(cause, repo, origin, what) {
      const make = () => pullEvent(app, cause, repo, origin, what)
      note({ kind: 'pulls', group: repo.group, now: cause.now, make })
    },
    refused(cause, repo, origin, what) {
      const make = () => pushEvent(app, cause, repo, origin, what)
      note({ kind: 'refused pushes', group: repo.group, now: cause.now, make })
    },
    async flush() {
      await drops.tell()
      return writer.flush()
    },
    async close() {
      await drops.tell().catch(report.failed)
      await writer.close()
    },
  }
}

/**
 * Counts dropped events by kind and group until it is known whether a receiver wanted them. Events that no receiver wanted do not
 * count as dropped.
 */
function createDrops(
  isWanted: (one: Pick<Waiting, 'kind' | 'group'>) => Promise<boolean>,
  report: RegistryEventsReport,
) {
  const drops = new Map<string, { kind: OnDemandEvent; group: string; count: number }>()
  return {
    add({ kind, group }: Waiting): void {
      const key = `${kind} ${group}`
      const known = drops.get(key)
      if (known) known.count++
      else if (drops.size < maxDropping) drops.set(key, { kind, group, count: 1 })
    },
    async tell(): Promise<void> {
      const counts: Record<OnDemandEvent, number> = { pulls: 0, 'refused pushes': 0 }
      for (const [key, one] of drops) {
        const wanted = await isWanted(one)
        if (drops.delete(key) && wanted) counts[one.kind] += one.count
      }
      for (const [kind, count] of Object.entries(counts)) report.dropped(kind as OnDemandEvent, count)
    },
  }
}

/** Limits the events of each kind for an organization in a minute. The time of the last event determines the minute. */
function createShare(perMinute: () => number) {
  let minute = ''
  let taken = new Map<string, number>()
  const minuteOf = ({ now }: Waiting) => now.slice(0, 16)
  const keyOf = ({ kind, group }: Waiting) => `${kind} ${rootOf(group)}`
  return {
    take(one: Waiting): boolean {
      if (minuteOf(one) !== minute) {
        minute = minuteOf(one)
        taken = new Map()
      }
      const count = taken.get(keyOf(one)) ?? 0
      if (count >= perMinute()) return false
      taken.set(keyOf(one), count + 1)
      return true
    },
    giveBack(one: Waiting): void {
      const count = taken.get(keyOf(one)) ?? 0
      if (minuteOf(one) === minute && count > 0) taken.set(keyOf(one), count - 1)
    },
  }
}

function pushEvent(app: Table, cause: Cause, repo: EventRepo, origin: Origin, pushed: Pushed): NewEvent {
  const transfer = { cause, repo, origin, what: cutTag(pushed) }
  return newEvent(app, cause, 'registry.push', createBody(transfer, toPushResource(transfer)))
}

function pullEvent(app: Table, cause: Cause, repo: EventRepo, origin: Origin, pulled: Pulled): NewEvent {
  const transfer = { cause, repo, origin, what: cutTag(pulled) }
  return newEvent(app, cause, 'registry.pull', createBody(transfer, toPullResource(transfer)))
}

/** Longest tag in an event. The tag of a refused request can be any text, and the headers of a delivery must stay short. */
const maxTag = 128

function cutTag<What extends Pushed | Pulled>(what: What): What {
  return what.tag === undefined ? what : { ...what, tag: what.tag.slice(0, maxTag).toWellFormed() }
}

function createBody({ cause, repo, origin, what }: Transfer<Pushed | Pulled>, resource: Resource) {
  const host = origin.subdomain === '' ? origin.host : `${origin.subdomain}.${origin.host}`
  return {
    subject: repo.uid,
    group: repo.group,
    resource,
    // Pull events have only the uid of the actor, since pulls are frequent and the claims of a sign-in are long. For a push
    // token, the claims name the token.
    ...(cause.act?.iss === pushTokenIssuer ? {} : { actor: cause.actor }),
    source: origin.host,
    extensions: {
      image: `${host}/${origin.repository}${what.tag === undefined ? '' : `:${what.tag}`}`,
      digest: what.digest,
      mediatype: what.mediaType,
    },
  }
}
