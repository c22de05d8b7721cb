// Reader of one subscription's queue: first the stored deliveries that are pending, then the events behind the position of
// the queue. It also knows how far the queue has got, which is saved with the results of attempts: an event whose first
// attempt has ended has a row, and all others are found again from the position of the queue and those of its subjects.
import type { App } from '#app.ts'
import { type Checkpoint, findProgress, type Progress } from './backlog.store.ts'
import { readEvents, readSubject } from './backlog.ts'
import type { Waiting } from './deliveries.model.ts'
import { type Lane, Lanes, laneRows } from './lanes.ts'
import { scanSubject, scanWaiting } from './sending.store.ts'

const rowsAtOnce = 500
/** How often the position is read at first, when the queue gets something during the read. */
const opensAtOnce = 3
/** Subjects in memory up to which more events are read. */
const maxLanes = 20_000

/** A class, since its state lives as long as the queue that it belongs to. */
export class QueueReader {
  readonly lanes = new Lanes()
  readonly #app: Pick<App, 'db' | 'vendor'>
  readonly #place: { subscription: number; node: string }
  /** The generation whose position is known; `undefined` until the position is read. */
  #generation: number | undefined
  /** The id of the last stored delivery that was read. */
  #cursor = 0
  #isExhausted = false
  /** Deliveries in hand that were stored from here, so they are not read once more. */
  readonly #own = new Set<number>()
  /** Raised by whatever the queue gets, so that a read that has begun before does not end the reading. */
  #notes = 0
  /** Up to here events have been read. */
  #position = 0
  #isBehind = false
  /** As the database has it. */
  #saved = { position: 0, lanes: new Map<string, number>() }

  constructor(app: Pick<App, 'db' | 'vendor'>, place: { subscription: number; node: string }) {
    this.#app = app
    this.#place = place
  }

  /** Whether there may be events that were not read. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Generation up to which the reader knows the position. A release of a later one could drop events that were never read. */
  get generation(): number | undefined {
    return this.#generation
  }

  /** The queue has got something. `behind` is its position in the database at this generation. */
  note({ behind, generation }: { behind: number; generation: number }): void {
    this.#notes++
    this.#isExhausted = false
    if (this.#generation === undefined) return
    this.#generation = generation
    if (behind === 0) return
    // A queue without a position gets one before the next event that it wants.
    if (this.#saved.position === 0) {
      this.#position = Math.max(this.#position, behind)
      this.#saved.position = behind
    }
    this.#isBehind = true
  }

  /** Subjects in hand that have no row, but may need one. */
  get unstored(): number {
    let count = 0
    for (const { rows, moreEvents } of this.lanes.all()) if (rows[0] ? rows[0].id === 0 : moreEvents) count++
    return count
  }

  /** Reads until so many subjects are ready, or nothing is left. `roomForEvents` says how many more subjects may need a row. */
  async read(room: number, now: () => number, roomForEvents: () => Promise<number>): Promise<void> {
    const { lanes } = this
    if (this.#generation === undefined) await this.#open(now())
    for (const lane of lanes.hungry()) await this.#feedStored(lane, now)
    while (lanes.readyCount < room && !this.#isExhausted) await this.#readStored(now)
    if (!this.#isExhausted) return
    for (const lane of lanes.hungry()) await this.#feedEvents(lane, now)
    while (lanes.readyCount < room && lanes.size < maxLanes && this.#isBehind) {
      const more = await roomForEvents()
      if (more <= 0) return
      await this.#readEvents(more, now)
    }
  }

  async #open(now: number): Promise<void> {
    let notes: number
    let progress: Progress
    let reads = 0
    do {
      notes = this.#notes
      progress = await findProgress(this.#app.db, this.#place.subscription)
    } while (notes !== this.#notes && ++reads < opensAtOnce)
    const { behind, position, lanes, generation } = progress
    this.#position = position
    this.#isBehind = behind > 0
    this.#saved = { position: behind, lanes }
    for (const [subject, at] of lanes) this.lanes.addBehind(subject, at, now)
    // If it is not that of the last note, the release fails and the queue is noted once more.
    this.#generation = generation
  }

  async #feedStored(lane: Lane, now: () => number): Promise<void> {
    while (lane.rows.length === 0 && lane.more) {
      const { subject, last } = lane
      const place = { subscription: this.#place.subscription, subject, after: last, upTo: this.#cursor }
      const rows = await scanSubject(this.#app.db, place, laneRows)
      // The result of a row that was stored from here may not be written yet.
      const others = rows.filter((row) => !this.#own.has(row.id))
      this.lanes.feed(lane, others, rows.length === laneRows, now(), rows.at(-1)?.id ?? last)
    }
  }

  async #readStored(now: () => number): Promise<void> {
    const notes = this.#notes
    const rows = await scanWaiting(this.#app.db, this.#place.subscription, this.#cursor, rowsAtOnce)
    this.#cursor = rows.at(-1)?.id ?? this.#cursor
    const others = rows.filter((row) => !this.#own.has(row.id) && !this.lanes.isBeingStored(row))
    this.lanes.add(others, now())
    if (rows.length < rowsAtOnce && notes === this.#notes) this.#isExhausted = true
  }

  async #feedEvents(lane: Lane, now: () => number): Promise<void> {
    while (lane.rows.length === 0 && lane.moreEvents) {
      const { subject, position: after } = lane
      const place = { ...this.#place, subject, after, upTo: this.#position }
      const { events, position, isEnd } = await readSubject(this.#app, this.#app.db, place, laneRows)
      this.lanes.feedEvents(lane, events, position, !isEnd, now())
    }
  }

  async #readEvents(subjects: number, now: () => number): Promise<void> {
    const notes = this.#notes
    const after = this.#position
    const { events, position, isEnd } = await readEvents(this.#app, this.#app.db, { ...this.#place, after })
    const added = new Set<string>()
    const end = events.findIndex(({ subject }) => {
      return !this.lanes.has(subject) && added.add(subject).size > subjects
    })
    const some = end < 0 ? events : events.slice(0, end)
    this.#position = end < 0 ? position : events[end]!.position - 1
    this.lanes.addEvents(some, now())
    if (notes === this.#notes) this.#isBehind = end >= 0 || !isEnd
  }

  /** The result of an attempt at the row of a lane is written, with this id. */
  recorded(lane: Lane, row: Waiting, id: number, isEnded: boolean, now: number): void {
    if (isEnded) this.#own.delete(id)
    else if (row.id === 0) {
      this.#own.add(id)
      this.lanes.stored(lane, id, now)
    }
  }

  /** Leaves out the events up to a position. Nothing may be on its way. */
  passOver(position: number, now: number): void {
    this.lanes.passOver(position, now)
    if (this.#isBehind) this.#position = Math.max(this.#position, position)
  }

  /**
   * How far the queue has got. Events that were tried are never behind it. So a subject is saved with a position of its own
   * if one of its events is older than one that was tried, or if it has to wait anyway.
   */
  checkpoint(): Checkpoint | undefined {
    if (this.#generation === undefined) return undefined
    const lastEnded = Math.max(this.#saved.position, this.lanes.lastEnded)
    const set = new Map<string, number>()
    const left = new Set<string>()
    let firstLeft = Number.POSITIVE_INFINITY
    for (const lane of this.lanes.all()) {
      const first = firstEventOf(lane)
      if (first === undefined) continue
      if (first <= lastEnded || lane.moreEvents || lane.rows[0]?.position === 0) {
        left.add(lane.subject)
        if (this.#saved.lanes.get(lane.subject) !== first - 1) set.set(lane.subject, first - 1)
      } else firstLeft = Math.min(firstLeft, first)
    }
    const removed = [...this.#saved.lanes.keys()].filter((subject) => !left.has(subject))
    const isDone = left.size === 0 && firstLeft === Number.POSITIVE_INFINITY && !this.#isBehind
    const position = Math.min(firstLeft - 1, this.#position)
    const hasMoved = position !== this.#saved.position && !(isDone && this.#saved.position === 0)
    return { position, set, removed, isDone, isNews: hasMoved || set.size > 0 || removed.length > 0 }
  }

  /** The checkpoint is in the database; `position` is 0 when the queue was released without one. */
  saved({ set, removed }: Checkpoint, position: number): void {
    this.#saved.position = position
    for (const subject of removed) this.#saved.lanes.delete(subject)
    for (const [subject, at] of set) this.#saved.lanes.set(subject, at)
  }
}

/** No event of the lane's subject before this position is left; `undefined` when none is left at all. */
function firstEventOf({ rows, moreEvents, position }: Lane): number | undefined {
  const event = rows.find((row) => row.position > 0)
  return event?.position ?? (moreEvents ? position + 1 : undefined)
}
