// What came of attempts, written for many at a time: one commit for each would allow as many deliveries a second as a
// disk has syncs.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import { ownCause } from '#lib/cause.ts'
import { type NewEvent, newEvent, queueEvents } from '../outbox/emit.ts'
import { trimDeliveries } from '../outbox/retention.store.ts'
import type { Outcome } from './attempt.ts'
import { type DeliveryState, deliveryStates, kept, pausedSettings } from './deliveries.model.ts'
import { freeQueue, pauseQueue, releaseQueue, type SinkState, setSinkState } from './queues.store.ts'
import { insertAttempts, markDelivered, markFailed } from './sending.store.ts'

/** Subscriptions of which ended deliveries are counted. One that is forgotten is trimmed a little later. */
const mostCounted = 10_000

export type Pause = { uid: string; group: string; types: string; reason: string }

export type Entry = {
  subscription: number
  delivery: number
  /** `undefined` when there was nothing left to send. */
  outcome: Outcome | undefined
  /** When the attempt began. */
  time: string
  state: DeliveryState
  /** When to try again; empty for as soon as its turn comes. */
  nextTime: string
  /** How the sink as a whole fares, when that has changed. */
  sink?: SinkState
  /** Nothing more is to be sent, and the others are told why. */
  pause?: Pause
}

export type Results = {
  /** Resolves once it is written. After a power cut the last deliveries may be sent again. */
  record(entry: Entry): Promise<void>
  /** Gives the queue back behind everything that was recorded; see `releaseQueue`. */
  release(queue: { subscription: number; generation: number }, dueTime: string | undefined): Promise<boolean>
  /** Removes the oldest deliveries that have ended, when there are more than are kept. */
  trim(subscription: number): Promise<void>
  /** Gives the queue back as it is. */
  free(subscription: number): Promise<void>
  /** Resolves once nothing is left to write, or it cannot be. */
  close(): Promise<void>
}

type Waiting = { write(tx: Tx): Promise<unknown>; entry?: Entry; resolve(value: unknown): void }

/** Long enough to collect some, and short against what a receiver takes. */
const collectMs = 10
const enough = 16
const retryMs = 500
const triesAtEnd = 5

export function createResults(
  app: Pick<App, 'db' | 'log' | 'clock' | 'events' | 'eventTable'>,
  node: string,
  keep = kept,
): Results {
  const { db, log } = app
  /** Deliveries that ended since the last trim, by subscription. */
  const ended = new Newest<number, number>(mostCounted)
  let waiting: Waiting[] = []
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined
  let closed = false

  const flushOnce = async (): Promise<boolean> => {
    const batch = waiting
    waiting = []
    try {
      const values = await db.tx((tx) => writeBatch(tx, batch), { isolation: 'rowLocks', durability: 'later' })
      for (const [i, { resolve }] of batch.entries()) resolve(values[i])
      return true
    } catch (error) {
      log.error('results of deliveries could not be written', { error })
      waiting = [...batch, ...waiting]
      return false
    }
  }
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    flushing ??= flushOnce().then((written) => {
      flushing = undefined
      if (waiting.length > 0) later(written ? (waiting.length >= enough ? 0 : collectMs) : retryMs)
    })
  }
  const later = (ms: number): void => {
    if (ms === 0) flush()
    else timer ??= setTimeout(flush, ms)
  }
  const add = <T>(one: Omit<Waiting, 'resolve'>): Promise<T> => {
    const { promise, resolve } = Promise.withResolvers<T>()
    if (closed) return promise
    waiting.push({ ...one, resolve: resolve as (value: unknown) => void })
    if (!flushing) later(waiting.length >= enough ? 0 : collectMs)
    return promise
  }

  const trim = (subscription: number) =>
    add<void>({ write: (tx) => trimDeliveries(tx, subscription, keep.deliveries, keep.trimmed) })

  return {
    async record(entry) {
      await add<void>({ entry, write: (tx) => writeEntry(tx, app, entry) })
      if (entry.state === deliveryStates.waiting) return
      const count = (ended.get(entry.subscription) ?? 0) + 1
      if (count < keep.every) return void ended.set(entry.subscription, count)
      ended.delete(entry.subscription)
      void trim(entry.subscription)
    },
    trim,
    release: (queue, dueTime) => add<boolean>({ write: (tx) => releaseQueue(tx, queue, node, dueTime) }),
    free: (subscription) => add<void>({ write: (tx) => freeQueue(tx, subscription, node) }),
    async close() {
      for (let tries = 0; tries < triesAtEnd && (flushing || waiting.length > 0); tries++) {
        if (!flushing) flush()
        await flushing
      }
      closed = true
      waiting = []
      clearTimeout(timer)
    },
  }
}

/** Most entries are deliveries that went well, which two statements write for all of them. */
async function writeBatch(tx: Tx, batch: readonly Waiting[]): Promise<unknown[]> {
  const entries = batch.flatMap(({ entry }) => (entry ? [entry] : []))
  const delivered = entries.filter(({ state }) => state === deliveryStates.delivered).map(({ delivery }) => delivery)
  if (delivered.length > 0) await markDelivered(tx, delivered)
  const attempts = entries.flatMap(({ delivery, outcome, time }) => {
    return outcome ? [{ delivery, ...outcome, createTime: time }] : []
  })
  if (attempts.length > 0) await insertAttempts(tx, attempts)
  const values: unknown[] = []
  for (const one of batch) values.push(await one.write(tx))
  return values
}

async function writeEntry(tx: Tx, app: Pick<App, 'clock' | 'events' | 'eventTable'>, entry: Entry): Promise<void> {
  const { subscription, delivery, state, nextTime, sink, pause } = entry
  if (state !== deliveryStates.delivered) await markFailed(tx, delivery, state, nextTime)
  if (sink) await setSinkState(tx, subscription, sink)
  if (pause && (await pauseQueue(tx, subscription, pause.reason))) {
    await queueEvents(tx, app, pausedEvent(app, pause))
  }
}

/** What a request to pause would have written, but that nobody has asked. */
function pausedEvent(app: Pick<App, 'clock' | 'eventTable'>, { uid, group, types, reason }: Pause): NewEvent {
  const resource = pausedSettings({ uid, types: JSON.parse(types) as string[], paused: true, pauseReason: reason })
  return newEvent(app, ownCause(app.clock), 'events.subscription.updated', { subject: uid, group, resource })
}
