// Cache of the newest events in this process, which all streams share. Events of this process wake the cache at once. The cache
// polls for events of other servers. If a stream is older than the cache, it reads from the database and does not use memory
// here.
import type { App } from '#app.ts'
import type { Db } from '#db/sql.ts'
import { AppError, unavailable } from '#lib/errors.ts'
import { lastPosition } from '../delivery/backlog.store.ts'
import type { Feed, OrderedEvent } from './stream.model.ts'
import * as store from './stream.store.ts'

const lookMs = 1000
/**
 * Limit on the events of one read. The number is small, because events can be large and each stream that reads from the database
 * holds this number.
 */
const batch = 32
/** Limits on the number of events in memory, and on their characters. */
const maxRecent = 1000
const maxRecentLength = 4 * 1024 * 1024

type Parts = { db: Db; failures: App['failures']; events: Pick<App['events'], 'routed'> }

/**
 * All events after `base` and up to `newest`. Exists only while there are streams, so that the process does not poll without
 * need.
 */
type View = { base: number; newest: number | undefined; recent: OrderedEvent[]; length: number; end(): void }

export function createFeed(parts: Parts, perCaller: number): Feed {
  return new EventFeed(parts, perCaller)
}

class EventFeed implements Feed {
  readonly #parts: Parts
  readonly #perCaller: number
  readonly #followers = new Map<string, number>()
  readonly #waiting = new Set<() => void>()
  #view: View | undefined
  #looking: Promise<void> | undefined
  #again = false

  constructor(parts: Parts, perCaller: number) {
    this.#parts = parts
    this.#perCaller = perCaller
  }

  follow(caller: string): ReturnType<Feed['follow']> {
    const mine = this.#enter(caller)
    let over = false
    return {
      newest: () => this.#newestOf(mine),
      after: (position, waitMs, signal) => this.#after(mine, position, waitMs, signal),
      [Symbol.dispose]: () => {
        if (!over) this.#leave(caller)
        over = true
      },
    }
  }

  close(): void {
    this.#view?.end()
  }

  async #newestOf(mine: View): Promise<number> {
    if (mine.newest === undefined) await this.#look()
    if (mine.newest === undefined) throw unavailable('the server is stopping')
    return mine.newest
  }

  async #after(mine: View, position: number, waitMs: number, signal: AbortSignal) {
    const isBehind = (await this.#newestOf(mine)) > position
    if (!isBehind) await waitFor(this.#waiting, () => mine.newest! > position, waitMs, signal)
    signal.throwIfAborted()
    const { base } = mine
    const events =
      position < base
        ? await store.eventsAfter(this.#parts.db, position, batch)
        : mine.recent.filter((event) => event.position > position).slice(0, batch)
    const last = events.at(-1)?.position ?? position
    return { events, upTo: events.length < batch ? Math.max(last, base) : last }
  }

  async #read(): Promise<void> {
    const { db } = this.#parts
    const mine = this.#view
    if (mine && mine.newest === undefined) mine.newest = mine.base = await lastPosition(db)
    for (let found = batch; mine && found === batch; ) {
      const more = await store.eventsAfter(db, mine.newest!, batch)
      if (this.#view !== mine) return
      for (const event of more) keep(mine, event)
      found = more.length
      if (found > 0) for (const wake of this.#waiting) wake()
    }
  }

  /** Polls the database, one poll at a time. A request during a poll starts another poll. */
  #look(): Promise<void> {
    this.#again = true
    this.#looking ??= this.#lookAgain().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #lookAgain(): Promise<void> {
    while (this.#again) {
      this.#again = false
      await this.#read()
    }
  }

  #start(): View {
    const { failures, events } = this.#parts
    const tryLook = (): void => {
      this.#look().catch((error: unknown) => failures.repeated('reading new events failed', error))
    }
    const timer = setInterval(tryLook, lookMs)
    const unsubscribe = events.routed.subscribe(tryLook)
    const end = (): void => {
      clearInterval(timer)
      unsubscribe()
      this.#view = undefined
    }
    return { base: 0, newest: undefined, recent: [], length: 0, end }
  }

  #enter(caller: string): View {
    const streams = this.#followers.get(caller) ?? 0
    if (streams >= this.#perCaller) {
      const message = `the stream was not opened, because the caller already has ${this.#perCaller} open event streams; close one first`
      throw new AppError('RESOURCE_EXHAUSTED', message, { reason: 'TOO_MANY_STREAMS' })
    }
    this.#followers.set(caller, streams + 1)
    this.#view ??= this.#start()
    return this.#view
  }

  #leave(caller: string): void {
    const left = this.#followers.get(caller)! - 1
    if (left > 0) this.#followers.set(caller, left)
    else this.#followers.delete(caller)
    if (this.#followers.size === 0) this.#view?.end()
  }
}

function keep(view: View, event: OrderedEvent): void {
  view.newest = event.position
  view.recent.push(event)
  view.length += event.body.length
  while (view.recent.length > maxRecent || view.length > maxRecentLength) {
    const oldest = view.recent.shift()!
    view.length -= oldest.body.length
    view.base = oldest.position
  }
}

/** Resolves when the condition is true, when the time has passed, or when the signal is aborted. */
function waitFor(waiting: Set<() => void>, isTrue: () => boolean, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      waiting.delete(wake)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const wake = (): void => {
      if (isTrue()) end()
    }
    const timer = setTimeout(end, ms)
    waiting.add(wake)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}
