// Events of the registry's own protocol: what was pushed and pulled, by whom, and what was refused.
import type { App, Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { maxUserAgent } from '../audit/audit.model.ts'
import { queueEvents } from './emit.ts'
import type { OutboxEvent } from './outbox.store.ts'

/** How the client named the repository, and who it was. `subdomain` is empty for the registry's own host. */
export type Origin = {
  host: string
  subdomain: string
  repository: string
  userAgent: string
  remoteAddress: string
}

/** The repo: its uid, the uid of its group, and its path in names. */
export type EventRepo = { uid: string; group: string; path: string }

export type RegistryError = { status: number; code: string; message: string }

type Content = { type: 'manifest' | 'blob'; digest: string; tag?: string; mediaType?: string; error?: RegistryError }
export type Pushed = Content & { previousDigest?: string }
export type Pulled = Content & { method: 'GET' | 'HEAD' }

/** Queues the event of a push inside the transaction that stores what was pushed. */
export async function emitPush(
  tx: Tx,
  call: Pick<Call, 'app' | 'caller' | 'now'>,
  repo: EventRepo,
  origin: Origin,
  pushed: Pushed,
): Promise<void> {
  await queueEvents(tx, call.app, pushEvent({ actor: call.caller.uid, time: call.now, repo, origin }, pushed))
}

/** Events that belong to no transaction. Noting one costs next to nothing; they are written together, a little later. */
export type RegistryEvents = {
  pulled(call: Pick<Call, 'caller' | 'now'>, repo: EventRepo, origin: Origin, what: Pulled): void
  /** A push that was refused. */
  refused(call: Pick<Call, 'caller' | 'now'>, repo: EventRepo, origin: Origin, what: Pushed): void
  flush(): Promise<void>
  close(): Promise<void>
}

const flushMs = 1000
/** On SQLite a commit stops everything, so there are few of them, and none is long. */
const perCommit = 500
/** With more than these waiting, the database does not keep up, and pulls are not made to wait for it. */
const maxWaiting = 20_000

type NewEvent = Omit<OutboxEvent, 'uuid'>

/** `report` hears of events that could not be written, and of how many were dropped. */
export function createRegistryEvents(
  { db, events: signals }: Pick<App, 'db' | 'events'>,
  report: { failed(error: unknown): void; dropped(count: number): void },
): RegistryEvents {
  let waiting: (() => NewEvent)[] = []
  let dropped = 0
  let writing: Promise<void> | undefined

  const note = (make: () => NewEvent): void => {
    if (waiting.length < maxWaiting) waiting.push(make)
    else dropped++
  }
  const write = async (): Promise<void> => {
    if (dropped > 0) report.dropped(dropped)
    dropped = 0
    while (waiting.length > 0) {
      const events = waiting.slice(0, perCommit).map((make) => make())
      await db.tx((tx) => queueEvents(tx, { events: signals }, ...events), { durability: 'later' })
      waiting = waiting.slice(events.length)
    }
  }
  const flush = (): Promise<void> => {
    writing ??= write().finally(() => {
      writing = undefined
    })
    return writing
  }
  const timer = setInterval(() => void flush().catch(report.failed), flushMs)
  timer.unref()
  const whoOf = (call: Pick<Call, 'caller' | 'now'>, repo: EventRepo, origin: Origin): Who => {
    return { actor: call.caller.uid, time: call.now, repo, origin }
  }
  return {
    pulled(call, repo, origin, what) {
      const who = whoOf(call, repo, origin)
      note(() => pullEvent(who, what))
    },
    refused(call, repo, origin, what) {
      const who = whoOf(call, repo, origin)
      note(() => pushEvent(who, what))
    },
    flush,
    async close() {
      clearInterval(timer)
      await writing?.catch(() => {})
      await flush().catch(report.failed)
    },
  }
}

type Who = { actor: string; time: string; repo: EventRepo; origin: Origin }

function pushEvent(who: Who, pushed: Pushed): NewEvent {
  const { repo, origin } = who
  const own = {
    ...(origin.repository === repo.path ? {} : { display_name: repo.path }),
    ...(pushed.previousDigest ? { tag_previous_digest: pushed.previousDigest } : {}),
  }
  return eventOf('push', who, pushed, own)
}

function pullEvent(who: Who, pulled: Pulled): NewEvent {
  return eventOf('pull', who, pulled, { method: pulled.method })
}

/** Those of refused attempts may be anything, and the headers of a delivery must not grow with them. */
const maxTag = 128

function eventOf(kind: 'push' | 'pull', { actor, time, repo, origin }: Who, what: Content, own: object): NewEvent {
  const tag = what.tag?.slice(0, maxTag).toWellFormed()
  const body = {
    repository: origin.repository,
    repo_id: repo.uid,
    ...(origin.subdomain === '' ? {} : { subdomain: origin.subdomain }),
    ...(tag === undefined ? {} : { tag }),
    digest: what.digest,
    type: what.type,
    // A date and time without a zone, by convention UTC, with six digits after the second.
    when: `${time.slice(0, -1)}000`,
    location: '',
    remote_address: origin.remoteAddress,
    user_agent: origin.userAgent.slice(0, maxUserAgent).toWellFormed(),
    ...(what.error ? { error: what.error } : {}),
    ...own,
  }
  const host = origin.subdomain === '' ? origin.host : `${origin.subdomain}.${origin.host}`
  return {
    type: `dev.pinfold.registry.${kind}.v1`,
    audience: 'CUSTOMER',
    source: origin.host,
    subject: repo.uid,
    group: repo.group,
    actor: JSON.stringify({ subject: actor }),
    bodyType: kind === 'push' ? 'pinfold.registry.PushEvent' : 'pinfold.registry.PullEvent',
    body: JSON.stringify(body),
    extensions: {
      image: `${host}/${origin.repository}${tag === undefined ? '' : `:${tag}`}`,
      digest: what.digest,
      ...(what.mediaType === undefined ? {} : { mediatype: what.mediaType }),
    },
    createTime: time,
  }
}
