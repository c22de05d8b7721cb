// What this process knows of the newest events, read once however many streams follow. Events of this process wake it at
// once; those of other nodes it finds by looking. Nobody's events are kept for a stream that is behind: it reads them from
// the database, and so costs no memory.
import type { App } from '#app.ts'
import type { Db } from '#db/sql.ts'
import { AppError, unavailable } from '#lib/errors.ts'
import type { Logger } from '#lib/log.ts'
import type { Feed, PlacedEvent } from './stream.model.ts'
import * as store from './stream.store.ts'

const lookMs = 1000
/** Few, since the body of an event may be large, and each stream that is behind holds so many. */
const batch = 32
/** How many of the newest events are kept in memory, and how much text of theirs. */
const maxRecent = 1000
const maxRecentLength = 4 * 1024 * 1024

type Parts = { db: Db; log: Logger; events: Pick<App['events'], 'routed'> }

/** All events behind `base` and not behind `newest`. Only while somebody follows, so that nobody looks for nothing. */
type View = { base: number; newest: number | undefined; recent: PlacedEvent[]; length: number; end(): void }

export function createFeed({ db, log, events }: Parts, perCaller: number): Feed {
  const followers = new Map<string, number>()
  const waiting = new Set<() => void>()
  let view: View | undefined
  let looking: Promise<void> | undefined
  let again = false

  async function read(): Promise<void> {
    const mine = view
    if (mine && mine.newest === undefined) mine.newest = mine.base = await store.newestPosition(db)
    for (let found = batch; mine && found === batch; ) {
      const more = await store.eventsAfter(db, mine.newest!, batch)
      if (view !== mine) return
      for (const event of more) keep(mine, event)
      found = more.length
      if (found > 0) for (const wake of waiting) wake()
    }
  }

  /** One look at a time; whoever asks meanwhile gets another one. */
  function look(): Promise<void> {
    again = true
    looking ??= (async () => {
      while (again) {
        again = false
        await read()
      }
    })().finally(() => {
      looking = undefined
    })
    return looking
  }

  function start(): View {
    const tryLook = (): void => {
      look().catch((error: unknown) => log.warn('new events could not be read', { error }))
    }
    const timer = setInterval(tryLook, lookMs)
    const unsubscribe = events.routed.subscribe(tryLook)
    const end = (): void => {
      clearInterval(timer)
      unsubscribe()
      view = undefined
    }
    return { base: 0, newest: undefined, recent: [], length: 0, end }
  }

  function enter(caller: string): View {
    const open = followers.get(caller) ?? 0
    if (open >= perCaller) {
      const message = `a caller may have ${perCaller} streams at once`
      throw new AppError('RESOURCE_EXHAUSTED', message, { reason: 'TOO_MANY_STREAMS' })
    }
    followers.set(caller, open + 1)
    view ??= start()
    return view
  }

  function leave(caller: string): void {
    const left = followers.get(caller)! - 1
    if (left > 0) followers.set(caller, left)
    else followers.delete(caller)
    if (followers.size === 0) view?.end()
  }

  return {
    follow(caller) {
      const mine = enter(caller)
      let over = false
      const newest = async (): Promise<number> => {
        if (mine.newest === undefined) await look()
        if (mine.newest === undefined) throw unavailable('the server is stopping')
        return mine.newest
      }
      return {
        newest,
        async after(position, waitMs, signal) {
          if (position >= (await newest())) await waitFor(waiting, () => mine.newest! > position, waitMs, signal)
          signal.throwIfAborted()
          const { base } = mine
          const events =
            position < base
              ? await store.eventsAfter(db, position, batch)
              : mine.recent.filter((event) => event.position > position).slice(0, batch)
          const last = events.at(-1)?.position ?? position
          return { events, upTo: events.length < batch ? Math.max(last, base) : last }
        },
        [Symbol.dispose]() {
          if (!over) leave(caller)
          over = true
        },
      }
    },
    close: () => view?.end(),
  }
}

function keep(view: View, event: PlacedEvent): void {
  view.newest = event.position
  view.recent.push(event)
  view.length += event.body.length
  while (view.recent.length > maxRecent || view.length > maxRecentLength) {
    const oldest = view.recent.shift()!
    view.length -= oldest.body.length
    view.base = oldest.position
  }
}

/** Resolves when it is true, when the time is over, or when the signal says that nobody waits any more. */
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
