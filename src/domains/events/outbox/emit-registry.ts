// Events of the registry's own protocol: what was pushed and pulled, by whom, and what was refused.
import type { App, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import type { Cause } from '#lib/cause.ts'
import type { Resource } from '#lib/events/event-body.ts'
import { type NewEvent, newEvent, queueEvents } from './emit.ts'
import {
  aPull,
  aPush,
  type EventRepo,
  type Origin,
  type Pulled,
  type Pushed,
  type RegistryEvents,
  type Transfer,
} from './registry-events.model.ts'

export type { Origin, Pulled, Pushed } from './registry-events.model.ts'

type Table = Pick<App, 'eventTable'>

/** Queues the event of a push inside the transaction that stores what was pushed. */
export async function emitPush(
  tx: Tx,
  { app, cause }: Pick<Work, 'app' | 'cause'>,
  repo: EventRepo,
  origin: Origin,
  pushed: Pushed,
): Promise<void> {
  await queueEvents(tx, app, pushEvent(app, cause, repo, origin, pushed))
}

/** On SQLite a commit stops everything, so there are few of them, and none is long. */
const perCommit = 500
/** With more than these waiting, the database does not keep up, and pulls are not made to wait for it. */
const maxWaiting = 20_000

/** `report` hears of events that could not be written, and of how many were dropped. */
export function createRegistryEvents(
  app: Pick<App, 'db' | 'events' | 'eventTable'>,
  report: { failed(error: unknown): void; dropped(count: number): void },
): RegistryEvents {
  let waiting: (() => NewEvent)[] = []
  let dropped = 0
  let writing: Promise<number> | undefined

  const note = (make: () => NewEvent): void => {
    if (waiting.length < maxWaiting) waiting.push(make)
    else dropped++
  }
  const write = async (): Promise<number> => {
    let written = 0
    if (dropped > 0) report.dropped(dropped)
    dropped = 0
    while (waiting.length > 0) {
      const events = waiting.slice(0, perCommit).map((make) => make())
      await app.db.tx((tx) => queueEvents(tx, app, ...events), { durability: 'later' })
      waiting = waiting.slice(events.length)
      written += events.length
    }
    return written
  }
  const flush = (): Promise<number> => {
    writing ??= write().finally(() => {
      writing = undefined
    })
    return writing
  }
  return {
    pulled: (cause, repo, origin, what) => note(() => pullEvent(app, cause, repo, origin, what)),
    refused: (cause, repo, origin, what) => note(() => pushEvent(app, cause, repo, origin, what)),
    flush,
    async close() {
      await writing?.catch(() => {})
      await flush().catch(report.failed)
    },
  }
}

function pushEvent(app: Table, cause: Cause, repo: EventRepo, origin: Origin, pushed: Pushed): NewEvent {
  const transfer = { cause, repo, origin, what: cutTag(pushed) }
  return newEvent(app, cause, 'registry.push', about(transfer, aPush(transfer)))
}

function pullEvent(app: Table, cause: Cause, repo: EventRepo, origin: Origin, pulled: Pulled): NewEvent {
  const transfer = { cause, repo, origin, what: cutTag(pulled) }
  return newEvent(app, cause, 'registry.pull', about(transfer, aPull(transfer)))
}

/** Those of refused attempts may be anything, and the headers of a delivery must not grow with them. */
const maxTag = 128

function cutTag<What extends Pushed | Pulled>(what: What): What {
  return what.tag === undefined ? what : { ...what, tag: what.tag.slice(0, maxTag).toWellFormed() }
}

function about({ cause, repo, origin, what }: Transfer<Pushed | Pulled>, resource: Resource) {
  const host = origin.subdomain === '' ? origin.host : `${origin.subdomain}.${origin.host}`
  return {
    subject: repo.uid,
    group: repo.group,
    resource,
    // Who it is and no more: pulls are many, and the claims of a sign-in are long.
    actor: cause.actor,
    source: origin.host,
    extensions: {
      image: `${host}/${origin.repository}${what.tag === undefined ? '' : `:${what.tag}`}`,
      digest: what.digest,
      mediatype: what.mediaType,
    },
  }
}
