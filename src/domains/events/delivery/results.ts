// Writes the results of attempts in batches. With one commit for each result, the speed of the disk would limit deliveries. The
// first attempt of an event inserts its delivery, and updates the position of the queue in the same transaction.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { type NewEvent, newEvent, queueEvents } from '#domains/outbox/emit.ts'
import { Newest } from '#lib/caches/newest.ts'
import { ownCause } from '#lib/cause.ts'
import {
  freeQueue,
  lockQueues,
  pauseQueue,
  releaseQueue,
  type SinkState,
  setSinkState,
} from '../routing/queues.store.ts'
import { insertDeliveries, lockRouting } from '../routing/routing.store.ts'
import { trimDeliveries } from '../subscriptions/retention.store.ts'
import type { Outcome } from './attempt.ts'
import { type Checkpoint, saveProgress } from './backlog.store.ts'
import { type DeliveryState, deliveryStates, kept, pausedSettings } from './deliveries.model.ts'
import { insertAttempts, isStored, markDelivered, markFailed, type Proof } from './sending.store.ts'

/**
 * Limit on the subscriptions whose ended deliveries are counted. If a count is dropped, old deliveries of that subscription are
 * deleted later.
 */
const mostCounted = 10_000

export type Pause = { uid: string; group: string; types: string; reason: string }

/** Progress of a queue, as the queue reports it to the writer. */
export type Progress = {
  /** Progress to save. Undefined if the queue was not read yet. */
  checkpoint(): Checkpoint | undefined
  /** Reports that the checkpoint was saved. `position` is the new position of the queue. */
  saved(checkpoint: Checkpoint, position: number): void
}

export type Entry = {
  subscription: number
  /** Number of the delivery's row. 0 for the first attempt of an event, because the row does not exist yet. */
  delivery: number
  /** Event of the delivery, for a row that does not exist yet. */
  event: { event: number; subject: string; createTime: string }
  /** Outcome of the attempt. Undefined if the event has expired, so nothing was sent. */
  outcome: Outcome | undefined
  /** Start of the attempt. */
  time: string
  state: DeliveryState
  /** Time of the next attempt. Empty if the next attempt can start at once. */
  nextTime: string
  /** New state of the sink, if the state has changed. */
  sink?: SinkState
  /** If set, pauses the subscription and emits an event with the reason. */
  pause?: Pause
}

type Released = { subscription: number; generation: number }

export type Results = {
  /**
   * Writes the result of an attempt. Resolves with the ID of the delivery. Resolves with 0 if another server owns the queue and
   * repeats the attempt. After a power failure, the last deliveries may be sent again.
   */
  record(entry: Entry, progress: Progress): Promise<number>
  /** Releases the queue after all recorded results. See `releaseQueue`. */
  release(queue: Released, dueTime: string | undefined, progress: Progress): Promise<boolean>
  /** Deletes the oldest ended deliveries of the subscription beyond the limit. */
  trim(subscription: number): Promise<void>
  /** Releases the queue without changing its state. */
  free(subscription: number): Promise<void>
  /** Resolves once all results are written, or cannot be written. */
  close(): Promise<void>
}

type Waiting = {
  write(tx: Tx, written: { id: number; isDone: boolean }): Promise<unknown>
  entry?: Entry
  /** Queue whose progress is saved with this entry. */
  moved?: { subscription: number; progress: Progress; isReleased: boolean }
  /** Queue that `write` changes. */
  changes?: number
  resolve(value: unknown): void
}

/** Progress of the queues in a batch, read when the batch starts. Later results belong to the next batch. */
type Moved = Map<number, { progress: Progress; checkpoint: Checkpoint; isReleased: boolean }>

/** Delay in milliseconds before results are written together. The delay is short compared with the response time of a sink. */
const collectMs = 10
const enough = 16
const retryMs = 500
const triesAtEnd = 5

export function createResults(
  app: Pick<App, 'db' | 'failures' | 'clock' | 'events' | 'eventTable'>,
  node: string,
  keep = kept,
): Results {
  /** Number of deliveries that ended since the last trim, by subscription. */
  const ended = new Newest<number, number>(mostCounted)
  const batches = createBatches(app, node)
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined
  let closed = false

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    flushing ??= batches.write().then((written) => {
      flushing = undefined
      if (batches.size > 0) later(written ? (batches.size >= enough ? 0 : collectMs) : retryMs)
    })
  }
  const later = (ms: number): void => {
    if (ms === 0) flush()
    else timer ??= setTimeout(flush, ms)
  }
  const add = <T>(one: Omit<Waiting, 'resolve'>): Promise<T> => {
    const { promise, resolve } = Promise.withResolvers<T>()
    if (closed) return promise
    batches.add({ ...one, resolve: resolve as (value: unknown) => void })
    if (!flushing) later(batches.size >= enough ? 0 : collectMs)
    return promise
  }

  const trim = (subscription: number) =>
    add<void>({ write: (tx) => trimDeliveries(tx, subscription, keep.deliveries, keep.trimmed) })

  return {
    async record(entry, progress) {
      const { subscription } = entry
      const moved = { subscription, progress, isReleased: false }
      const id = await add<number>({
        entry,
        moved,
        ...((entry.sink ?? entry.pause) && { changes: subscription }),
        write: (tx, written) => writeEntry(tx, app, entry, written.id),
      })
      if (entry.state === deliveryStates.waiting || id === 0) return id
      const count = (ended.get(subscription) ?? 0) + 1
      if (count >= keep.every) void trim(subscription)
      ended.set(subscription, count % keep.every)
      return id
    },
    trim,
    release: (queue, dueTime, progress) =>
      add<boolean>({
        moved: { subscription: queue.subscription, progress, isReleased: true },
        changes: queue.subscription,
        write: (tx, { isDone }) => releaseQueue(tx, { ...queue, isDone }, node, dueTime),
      }),
    free: (subscription) => add<void>({ changes: subscription, write: (tx) => freeQueue(tx, subscription, node) }),
    async close() {
      for (let tries = 0; tries < triesAtEnd && (flushing || batches.size > 0); tries++) {
        if (!flushing) flush()
        await flushing
      }
      closed = true
      batches.forget()
      clearTimeout(timer)
    },
  }
}

/** Entries that wait to be written, and a batch for which it is unknown if it was committed. */
function createBatches({ db, failures }: Pick<App, 'db' | 'failures'>, node: string) {
  let waiting: Waiting[] = []
  let unsure: Tried | undefined
  const settle = ({ batch, values, saved }: Tried): void => {
    for (const { progress, checkpoint, position } of saved) progress.saved(checkpoint, position)
    for (const [i, { resolve }] of batch.entries()) resolve(values[i])
  }
  /** Checks if the last batch was committed. Writing the batch twice would duplicate the deliveries of first attempts. */
  const makeSure = async (tried: Tried): Promise<void> => {
    const isWritten = await db.tx((tx) => wasWritten(tx, tried.proof), { isolation: 'rowLocks' })
    unsure = undefined
    if (isWritten) settle(tried)
    else waiting = [...tried.batch, ...waiting]
  }
  /** Writes the waiting entries. Returns false if the write must be tried again. */
  const write = async (): Promise<boolean> => {
    let batch: Waiting[] = []
    let tried: Tried | undefined
    try {
      if (unsure) await makeSure(unsure)
      if (waiting.length === 0) return true
      batch = waiting
      waiting = []
      const moved = findMoved(batch)
      const work = async (tx: Tx) => {
        tried = undefined
        tried = await writeBatch(tx, batch, moved, node)
        return tried
      }
      settle(await db.tx(work, { isolation: 'rowLocks', durability: 'later' }))
      return true
    } catch (error) {
      failures.repeated('storing delivery results failed', error)
      if (tried) unsure = tried
      else waiting = [...batch, ...waiting]
      return false
    }
  }
  return {
    write,
    add: (one: Waiting): number => waiting.push(one),
    /** Number of waiting entries. */
    get size(): number {
      return waiting.length + (unsure?.batch.length ?? 0)
    },
    forget(): void {
      waiting = []
    },
  }
}

function findMoved(batch: readonly Waiting[]): Moved {
  const found: Moved = new Map()
  for (const { moved } of batch) {
    if (!moved) continue
    const known = found.get(moved.subscription)
    const checkpoint = known?.checkpoint ?? moved.progress.checkpoint()
    const isReleased = moved.isReleased || (known?.isReleased ?? false)
    if (checkpoint) found.set(moved.subscription, { progress: moved.progress, checkpoint, isReleased })
  }
  return found
}

type Saved = { progress: Progress; checkpoint: Checkpoint; position: number }

/** Content of a transaction that may have been committed. `proof` is a row that exists only if it was. */
type Tried = { batch: readonly Waiting[]; values: unknown[]; saved: Saved[]; proof: Proof | undefined }

/**
 * True if a transaction was committed although the database sent no response to the commit. The lock waits until the database has
 * ended the transaction.
 */
async function wasWritten(tx: Tx, proof: Proof | undefined): Promise<boolean> {
  if (!proof) return false
  await lockRouting(tx)
  return isStored(tx, proof)
}

async function writeBatch(tx: Tx, batch: readonly Waiting[], moved: Moved, node: string): Promise<Tried> {
  const entries = batch.flatMap(({ entry }) => (entry ? [entry] : []))
  const isNew = new Set(entries.filter(({ delivery }) => delivery === 0).map(({ subscription }) => subscription))
  const toSave = [...moved].filter(
    ([id, { checkpoint, isReleased }]) => checkpoint.isNews || isReleased || isNew.has(id),
  )
  if (toSave.length > 0) await lockRouting(tx)
  await lockQueues(tx, [...new Set([...toSave.map(([id]) => id), ...batch.flatMap(({ changes }) => changes ?? [])])])
  const saved = new Map<number, Saved>()
  for (const [id, { progress, checkpoint }] of toSave) {
    const isMine = (!checkpoint.isNews && !isNew.has(id)) || (await saveProgress(tx, id, node, checkpoint))
    if (isMine) saved.set(id, { progress, checkpoint, position: checkpoint.position })
  }
  const ids = await writeRows(tx, entries, (subscription) => saved.has(subscription))
  const values: unknown[] = []
  for (const one of batch) {
    const mine = one.moved && saved.get(one.moved.subscription)
    const isDone = mine?.checkpoint.isDone ?? false
    const value = await one.write(tx, { id: (one.entry && ids.get(one.entry)) ?? 0, isDone })
    if (mine && one.moved?.isReleased && isDone && value === true) mine.position = 0
    values.push(value)
  }
  return { batch, values, saved: [...saved.values()], proof: proofOf(ids) }
}

/**
 * Writes the rows of a batch. Most entries are successful deliveries, which are written together in a few statements. First
 * attempts of queues that the server does not own are left out. Returns the IDs of the rows.
 */
async function writeRows(
  tx: Tx,
  entries: readonly Entry[],
  isMine: (subscription: number) => boolean,
): Promise<Map<Entry, number>> {
  const stored = entries.filter(({ delivery }) => delivery !== 0)
  const created = entries.filter(({ delivery, subscription }) => delivery === 0 && isMine(subscription))
  const first = await insertDeliveries(
    tx,
    created.map(({ subscription, event, state, nextTime }) => ({ ...event, subscription, ended: { state, nextTime } })),
  )
  const ids = new Map([
    ...stored.map((entry) => [entry, entry.delivery] as const),
    ...created.map((entry, i) => [entry, first + i] as const),
  ])
  const delivered = stored.filter(({ state }) => state === deliveryStates.delivered).map(({ delivery }) => delivery)
  if (delivered.length > 0) await markDelivered(tx, delivered)
  const attempts = [...ids].flatMap(([{ outcome, time }, delivery]) => {
    return outcome ? [{ delivery, ...outcome, createTime: time }] : []
  })
  if (attempts.length > 0) await insertAttempts(tx, attempts)
  return ids
}

/** First row that the batch inserts. The row is a delivery, or an attempt of an existing delivery. */
function proofOf(ids: ReadonlyMap<Entry, number>): Proof | undefined {
  const all = [...ids]
  const [entry, id] = all.find(([{ delivery }]) => delivery === 0) ?? all.find(([{ outcome }]) => outcome) ?? []
  if (!entry || id === undefined) return undefined
  const { subscription, event, delivery, time } = entry
  return { delivery: id, subscription, event: event.event, attemptTime: delivery === 0 ? undefined : time }
}

async function writeEntry(
  tx: Tx,
  app: Pick<App, 'clock' | 'events' | 'eventTable'>,
  entry: Entry,
  id: number,
): Promise<number> {
  const { subscription, delivery, state, nextTime, sink, pause } = entry
  if (id === 0) return id
  if (delivery !== 0 && state !== deliveryStates.delivered) await markFailed(tx, delivery, state, nextTime)
  if (sink) await setSinkState(tx, subscription, sink)
  if (pause && (await pauseQueue(tx, subscription, pause.reason))) {
    await queueEvents(tx, app, pausedEvent(app, pause))
  }
  return id
}

/** Event for a pause by the server. It has the same form as the event for a pause by a caller. */
function pausedEvent(app: Pick<App, 'clock' | 'eventTable'>, { uid, group, types, reason }: Pause): NewEvent {
  const resource = pausedSettings({ uid, types: JSON.parse(types) as string[], paused: true, pauseReason: reason })
  return newEvent(app, ownCause(app.clock), 'events.subscription.updated', { subject: uid, group, resource })
}
