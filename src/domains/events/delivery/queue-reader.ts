// Reads the queue of one subscription. First it reads stored pending deliveries, then events after the position of the queue. It
// also tracks the progress of the queue, which is saved with the results of attempts. After the first attempt, an event has a
// row. Other events are found again by the positions of the queue and its subjects.
import type { App } from '#app.ts'
import { type Checkpoint, findProgress, type Progress } from './backlog.store.ts'
import { readEvents, readSubject } from './backlog.ts'
import type { Waiting } from './deliveries.model.ts'
import { scanSubject, scanWaiting } from './sending.store.ts'
import { type SubjectQueue, SubjectQueues, subjectQueueRows } from './subject-queues.ts'

const rowsAtOnce = 500
/** Limit on reading the first position again, if the queue gets new events during the read. */
const opensAtOnce = 3
/** Limit on the subjects in memory. Above this number, no more events are read. */
const maxSubjectQueues = 20_000

/** A class, since its state lives as long as its queue. */
export class QueueReader {
  readonly subjectQueues = new SubjectQueues()
  readonly #app: Pick<App, 'db' | 'vendor'>
  readonly #queue: { subscription: number; node: string }
  /** Generation of the queue whose position was read. Undefined until the position is read. */
  #generation: number | undefined
  /** ID of the last stored delivery that was read. */
  #cursor = 0
  #isExhausted = false
  /** IDs of deliveries in memory that this reader has stored. The reader does not read them again. */
  readonly #own = new Set<number>()
  /** Number of notifications. A read that began before the last notification does not end the reading. */
  #notes = 0
  /** Position up to which events have been read. */
  #position = 0
  #isBehind = false
  /** Progress as stored in the database. */
  #saved = { position: 0, subjectQueues: new Map<string, number>() }

  constructor(app: Pick<App, 'db' | 'vendor'>, queue: { subscription: number; node: string }) {
    this.#app = app
    this.#queue = queue
  }

  /** True if there may be events that were not read. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /**
   * Generation up to which the position is known. Releasing the queue at a later generation could lose events that were never
   * read.
   */
  get generation(): number | undefined {
    return this.#generation
  }

  /** Reports new deliveries or events. `behind` is the position of the queue in the database at this generation. */
  note({ behind, generation }: { behind: number; generation: number }): void {
    this.#notes++
    this.#isExhausted = false
    if (this.#generation === undefined) return
    this.#generation = generation
    if (behind === 0) return
    // If the queue has no position, the next event for the subscription sets the position.
    if (this.#saved.position === 0) {
      this.#position = Math.max(this.#position, behind)
      this.#saved.position = behind
    }
    this.#isBehind = true
  }

  /** Number of subjects in memory whose events have no rows and may need one. */
  get unstored(): number {
    let count = 0
    for (const { rows, moreEvents } of this.subjectQueues.all()) if (rows[0] ? rows[0].id === 0 : moreEvents) count++
    return count
  }

  /**
   * Reads until `room` subjects are ready, or until all is read. `roomForEvents` returns how many more subjects can get a row.
   */
  async read(room: number, now: () => number, roomForEvents: () => Promise<number>): Promise<void> {
    const { subjectQueues } = this
    if (this.#generation === undefined) await this.#open(now())
    for (const subjectQueue of subjectQueues.hungry()) await this.#feedStored(subjectQueue, now)
    while (subjectQueues.readyCount < room && !this.#isExhausted) await this.#readStored(now)
    if (!this.#isExhausted) return
    for (const subjectQueue of subjectQueues.hungry()) await this.#feedEvents(subjectQueue, now)
    while (subjectQueues.readyCount < room && subjectQueues.size < maxSubjectQueues && this.#isBehind) {
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
      progress = await findProgress(this.#app.db, this.#queue.subscription)
    } while (notes !== this.#notes && ++reads < opensAtOnce)
    const { behind, position, subjectQueues, generation } = progress
    this.#position = position
    this.#isBehind = behind > 0
    this.#saved = { position: behind, subjectQueues }
    for (const [subject, at] of subjectQueues) this.subjectQueues.addBehind(subject, at, now)
    // If there was a notification in the meantime, the generations differ. Then the release fails, and the queue is notified
    // again.
    this.#generation = generation
  }

  async #feedStored(subjectQueue: SubjectQueue, now: () => number): Promise<void> {
    while (subjectQueue.rows.length === 0 && subjectQueue.more) {
      const { subject, last } = subjectQueue
      const range = { subscription: this.#queue.subscription, subject, after: last, upTo: this.#cursor }
      const rows = await scanSubject(this.#app.db, range, subjectQueueRows)
      // Rows of this reader are left out, because their results may not be written yet.
      const others = rows.filter((row) => !this.#own.has(row.id))
      this.subjectQueues.feed(subjectQueue, others, rows.length === subjectQueueRows, now(), rows.at(-1)?.id ?? last)
    }
  }

  async #readStored(now: () => number): Promise<void> {
    const notes = this.#notes
    const rows = await scanWaiting(this.#app.db, this.#queue.subscription, this.#cursor, rowsAtOnce)
    this.#cursor = rows.at(-1)?.id ?? this.#cursor
    const others = rows.filter((row) => !this.#own.has(row.id) && !this.subjectQueues.isBeingStored(row))
    this.subjectQueues.add(others, now())
    if (rows.length < rowsAtOnce && notes === this.#notes) this.#isExhausted = true
  }

  async #feedEvents(subjectQueue: SubjectQueue, now: () => number): Promise<void> {
    while (subjectQueue.rows.length === 0 && subjectQueue.moreEvents) {
      const { subject, position: after } = subjectQueue
      const range = { ...this.#queue, subject, after, upTo: this.#position }
      const { events, position, isEnd } = await readSubject(this.#app, this.#app.db, range, subjectQueueRows)
      this.subjectQueues.feedEvents(subjectQueue, events, position, !isEnd, now())
    }
  }

  async #readEvents(subjects: number, now: () => number): Promise<void> {
    const notes = this.#notes
    const after = this.#position
    const { events, position, isEnd } = await readEvents(this.#app, this.#app.db, { ...this.#queue, after })
    const added = new Set<string>()
    const end = events.findIndex(({ subject }) => {
      return !this.subjectQueues.has(subject) && added.add(subject).size > subjects
    })
    const some = end < 0 ? events : events.slice(0, end)
    this.#position = end < 0 ? position : events[end]!.position - 1
    this.subjectQueues.addEvents(some, now())
    if (notes === this.#notes) this.#isBehind = end >= 0 || !isEnd
  }

  /** Reports that the result of an attempt was written, with the ID of the row. */
  recorded(subjectQueue: SubjectQueue, row: Waiting, id: number, isEnded: boolean, now: number): void {
    if (isEnded) this.#own.delete(id)
    else if (row.id === 0) {
      this.#own.add(id)
      this.subjectQueues.stored(subjectQueue, id, now)
    }
  }

  /** Removes the events up to a position. The caller must ensure that no request is in flight. */
  passOver(position: number, now: number): void {
    this.subjectQueues.passOver(position, now)
    if (this.#isBehind) this.#position = Math.max(this.#position, position)
  }

  /**
   * Progress of the queue. No tried event has a higher position. A subject with an older untried event is saved with a separate
   * position. So is a subject that waits for a retry.
   */
  checkpoint(): Checkpoint | undefined {
    if (this.#generation === undefined) return undefined
    const lastEnded = Math.max(this.#saved.position, this.subjectQueues.lastEnded)
    const set = new Map<string, number>()
    const left = new Set<string>()
    let firstLeft = Number.POSITIVE_INFINITY
    for (const subjectQueue of this.subjectQueues.all()) {
      const first = firstEventOf(subjectQueue)
      if (first === undefined) continue
      if (first <= lastEnded || subjectQueue.moreEvents || subjectQueue.rows[0]?.position === 0) {
        left.add(subjectQueue.subject)
        if (this.#saved.subjectQueues.get(subjectQueue.subject) !== first - 1) set.set(subjectQueue.subject, first - 1)
      } else firstLeft = Math.min(firstLeft, first)
    }
    const removed = [...this.#saved.subjectQueues.keys()].filter((subject) => !left.has(subject))
    const isDone = left.size === 0 && firstLeft === Number.POSITIVE_INFINITY && !this.#isBehind
    const position = Math.min(firstLeft - 1, this.#position)
    const hasMoved = position !== this.#saved.position && !(isDone && this.#saved.position === 0)
    return { position, set, removed, isDone, isNews: hasMoved || set.size > 0 || removed.length > 0 }
  }

  /** Reports that the checkpoint was saved. `position` is 0 if the queue was released without a position. */
  saved({ set, removed }: Checkpoint, position: number): void {
    this.#saved.position = position
    for (const subject of removed) this.#saved.subjectQueues.delete(subject)
    for (const [subject, at] of set) this.#saved.subjectQueues.set(subject, at)
  }
}

/** Position of the first remaining event of the subject, or a lower bound of this position. Undefined if no event is left. */
function firstEventOf({ rows, moreEvents, position }: SubjectQueue): number | undefined {
  const event = rows.find((row) => row.position > 0)
  return event?.position ?? (moreEvents ? position + 1 : undefined)
}
