// Pending deliveries and events of one subscription in memory. A subject queue contains those of one subject. Deliveries of one subject
// are sent in order. Subjects do not wait for each other. The caller reads rows and passes the present time.
import type { Waiting } from './deliveries.model.ts'

export type SubjectQueue = {
  subject: string
  rows: Waiting[]
  /** True if the database contains more rows of the subject, up to the position that the caller has read. */
  more: boolean
  /** ID of the last stored row in this subject queue. */
  last: number
  /** True if the subject has more events after `position`, up to the position that the caller has read. */
  moreEvents: boolean
  /**
   * Position up to which the events of the subject are in this subject queue or were tried before. If `moreEvents` is true, the next events
   * come after it. 0 if the subject queue has had no events.
   */
  position: number
  busy: boolean
  /** Time in milliseconds from which the first row can be sent. */
  dueAt: number
}

/** Limit on the rows of one subject in memory. The next rows are read when these are finished. */
export const subjectQueueRows = 32

/** A class, since its state lives as long as its queue. */
export class SubjectQueues {
  readonly #subjectQueues = new Map<string, SubjectQueue>()
  readonly #ready = new Set<SubjectQueue>()
  readonly #resting = new Set<SubjectQueue>()
  readonly #hungry = new Set<SubjectQueue>()
  #lastEnded = 0

  /** Highest position of an event whose first attempt has ended. */
  get lastEnded(): number {
    return this.#lastEnded
  }

  has(subject: string): boolean {
    return this.#subjectQueues.has(subject)
  }

  all(): Iterable<SubjectQueue> {
    return this.#subjectQueues.values()
  }

  get size(): number {
    return this.#subjectQueues.size
  }

  get readyCount(): number {
    return this.#ready.size
  }

  /** Adds a subject queue to the end of the set for its present state. */
  #sort(subjectQueue: SubjectQueue, now: number): void {
    for (const set of [this.#ready, this.#resting, this.#hungry]) set.delete(subjectQueue)
    if (subjectQueue.busy) return
    if (subjectQueue.rows.length === 0) {
      if (subjectQueue.more || subjectQueue.moreEvents) this.#hungry.add(subjectQueue)
    } else if (subjectQueue.dueAt <= now) this.#ready.add(subjectQueue)
    else this.#resting.add(subjectQueue)
  }

  #laneOf(subject: string): SubjectQueue {
    const known = this.#subjectQueues.get(subject)
    if (known) return known
    const subjectQueue = {
      subject,
      rows: [],
      more: false,
      last: 0,
      moreEvents: false,
      position: 0,
      busy: false,
      dueAt: 0,
    }
    this.#subjectQueues.set(subject, subjectQueue)
    return subjectQueue
  }

  /** Adds stored rows. They must come after all rows that were added before. */
  add(rows: readonly Waiting[], now: number): void {
    for (const row of rows) {
      const subjectQueue = this.#laneOf(row.subject)
      if (subjectQueue.more || subjectQueue.rows.length >= subjectQueueRows) {
        subjectQueue.more = true
        continue
      }
      subjectQueue.last = row.id
      this.#push(subjectQueue, row, now)
    }
  }

  /** Adds events. They must come after all events that were added before. */
  addEvents(events: readonly Waiting[], now: number): void {
    for (const event of events) {
      const subjectQueue = this.#laneOf(event.subject)
      if (subjectQueue.more || subjectQueue.moreEvents || subjectQueue.rows.length >= subjectQueueRows) {
        if (subjectQueue.position === 0) subjectQueue.position = event.position - 1
        subjectQueue.moreEvents = true
        continue
      }
      subjectQueue.position = event.position
      this.#push(subjectQueue, event, now)
    }
  }

  #push(subjectQueue: SubjectQueue, row: Waiting, now: number): void {
    subjectQueue.rows.push(row)
    // Only the first row of a subject queue determines its position among the subject queues. For other rows, the subject queue would move behind younger
    // subject queues.
    if (subjectQueue.rows.length > 1) return
    subjectQueue.dueAt = dueAtOf(row)
    this.#sort(subjectQueue, now)
  }

  /** Adds a subject that has untried events after a position. */
  addBehind(subject: string, position: number, now: number): void {
    const subjectQueue = this.#laneOf(subject)
    subjectQueue.moreEvents = true
    subjectQueue.position = position
    this.#sort(subjectQueue, now)
  }

  /** Subject queues that have no rows in memory but have rows in the database, which the caller must read. */
  hungry(): SubjectQueue[] {
    return [...this.#hungry]
  }

  /** Adds the next stored rows to a subject queue without rows in memory, up to the row with the ID `last`. */
  feed(
    subjectQueue: SubjectQueue,
    rows: readonly Waiting[],
    more: boolean,
    now: number,
    last = rows.at(-1)?.id ?? subjectQueue.last,
  ): void {
    subjectQueue.rows.push(...rows)
    subjectQueue.more = more
    subjectQueue.last = last
    this.#settle(subjectQueue, now)
  }

  /** Adds the next events to a subject queue without rows in memory, up to a position. */
  feedEvents(
    subjectQueue: SubjectQueue,
    events: readonly Waiting[],
    position: number,
    more: boolean,
    now: number,
  ): void {
    subjectQueue.rows.push(...events)
    subjectQueue.moreEvents = more
    subjectQueue.position = position
    this.#settle(subjectQueue, now)
  }

  /**
   * Subject queues whose first row can be sent now, the oldest subject queue first. A returned subject queue is busy until the caller reports the result.
   */
  take(limit: number, now: number): SubjectQueue[] {
    for (const subjectQueue of this.#resting) if (subjectQueue.dueAt <= now) this.#sort(subjectQueue, now)
    const taken: SubjectQueue[] = []
    for (const subjectQueue of this.#ready) {
      if (taken.length === limit) break
      taken.push(subjectQueue)
    }
    for (const subjectQueue of taken) {
      subjectQueue.busy = true
      this.#sort(subjectQueue, now)
    }
    return taken
  }

  /** If a sink fails for all subjects, returns the subject queue whose first row has the fewest attempts, even if the row is not due. */
  takeProbe(now: number): SubjectQueue[] {
    let least: SubjectQueue | undefined
    for (const subjectQueue of [...this.#ready, ...this.#resting]) {
      if (!least || subjectQueue.rows[0]!.attempts < least.rows[0]!.attempts) least = subjectQueue
    }
    if (!least) return []
    least.busy = true
    this.#sort(least, now)
    return [least]
  }

  /** Puts back a subject queue if its row was not sent. */
  putBack(subjectQueue: SubjectQueue, now: number): void {
    subjectQueue.busy = false
    this.#sort(subjectQueue, now)
  }

  /** Removes the first row of a subject queue after its last attempt. */
  done(subjectQueue: SubjectQueue, now: number): void {
    subjectQueue.busy = false
    const row = subjectQueue.rows.shift()
    this.#lastEnded = Math.max(this.#lastEnded, row?.position ?? 0)
    this.#settle(subjectQueue, now)
  }

  /** Updates a subject queue after its first row has changed. Removes the subject queue if it has no rows left. */
  #settle(subjectQueue: SubjectQueue, now: number): void {
    const first = subjectQueue.rows[0]
    subjectQueue.dueAt = first ? dueAtOf(first) : 0
    if (!first && !subjectQueue.more && !subjectQueue.moreEvents) this.#subjectQueues.delete(subjectQueue.subject)
    this.#sort(subjectQueue, now)
  }

  /**
   * Keeps the first row for another attempt at `dueAt`. If the row is an event, its subject queue stays busy until the event's delivery is
   * stored.
   */
  retry(subjectQueue: SubjectQueue, dueAt: number, now: number): void {
    const row = subjectQueue.rows[0]!
    this.#lastEnded = Math.max(this.#lastEnded, row.position)
    row.position = 0
    row.attempts++
    subjectQueue.dueAt = dueAt
    subjectQueue.busy = row.id === 0
    this.#sort(subjectQueue, now)
  }

  /**
   * True if a stored row belongs to an event in memory whose ID is not known yet. A replay of the same event has no attempts, so
   * it does not match.
   */
  isBeingStored({ subject, event, attempts }: Waiting): boolean {
    if (attempts === 0) return false
    const first = this.#subjectQueues.get(subject)?.rows[0]
    return first !== undefined && first.id === 0 && first.position === 0 && first.event === event
  }

  /** Sets the ID of the first row after the event's delivery was stored. */
  stored(subjectQueue: SubjectQueue, id: number, now: number): void {
    subjectQueue.rows[0]!.id = id
    subjectQueue.busy = false
    this.#sort(subjectQueue, now)
  }

  /** Removes the events up to a position. The caller must ensure that no request is in flight. */
  passOver(position: number, now: number): void {
    for (const subjectQueue of [...this.#subjectQueues.values()]) {
      const left = subjectQueue.rows.filter((row) => row.position === 0 || row.position > position)
      if (subjectQueue.moreEvents) subjectQueue.position = Math.max(subjectQueue.position, position)
      if (left.length === subjectQueue.rows.length) continue
      const isFirst = left[0] === subjectQueue.rows[0]
      subjectQueue.rows = left
      if (!isFirst) this.#settle(subjectQueue, now)
    }
  }

  /** Makes all subject queues due now that wait for a retry. */
  wake(now: number): void {
    for (const subjectQueue of this.#resting) {
      subjectQueue.dueAt = 0
      this.#sort(subjectQueue, now)
    }
  }

  /** Time at which the first subject queue that waits for a retry is due. Undefined if no subject queue waits. */
  nextDue(): number | undefined {
    let next: number | undefined
    for (const subjectQueue of this.#resting)
      if (next === undefined || subjectQueue.dueAt < next) next = subjectQueue.dueAt
    return next
  }
}

function dueAtOf({ nextTime }: Waiting): number {
  return nextTime === '' ? 0 : Date.parse(nextTime)
}
