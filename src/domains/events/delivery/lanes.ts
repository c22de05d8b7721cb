// Pending deliveries and events of one subscription in memory. A lane contains those of one subject. Deliveries of one subject
// are sent in order. Subjects do not wait for each other. The caller reads rows and passes the present time.
import type { Waiting } from './deliveries.model.ts'

export type Lane = {
  subject: string
  rows: Waiting[]
  /** True if the database contains more rows of the subject, up to the position that the caller has read. */
  more: boolean
  /** ID of the last stored row in this lane. */
  last: number
  /** True if the subject has more events after `position`, up to the position that the caller has read. */
  moreEvents: boolean
  /**
   * Position up to which the events of the subject are in this lane or were tried before. If `moreEvents` is true, the next events
   * come after it. 0 if the lane has had no events.
   */
  position: number
  busy: boolean
  /** Time in milliseconds from which the first row can be sent. */
  dueAt: number
}

/** Limit on the rows of one subject in memory. The next rows are read when these are finished. */
export const laneRows = 32

/** A class, since its state lives as long as its queue. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #ready = new Set<Lane>()
  readonly #resting = new Set<Lane>()
  readonly #hungry = new Set<Lane>()
  #lastEnded = 0

  /** Highest position of an event whose first attempt has ended. */
  get lastEnded(): number {
    return this.#lastEnded
  }

  has(subject: string): boolean {
    return this.#lanes.has(subject)
  }

  all(): Iterable<Lane> {
    return this.#lanes.values()
  }

  get size(): number {
    return this.#lanes.size
  }

  get readyCount(): number {
    return this.#ready.size
  }

  /** Adds a lane to the end of the set for its present state. */
  #sort(lane: Lane, now: number): void {
    for (const set of [this.#ready, this.#resting, this.#hungry]) set.delete(lane)
    if (lane.busy) return
    if (lane.rows.length === 0) {
      if (lane.more || lane.moreEvents) this.#hungry.add(lane)
    } else if (lane.dueAt <= now) this.#ready.add(lane)
    else this.#resting.add(lane)
  }

  #laneOf(subject: string): Lane {
    const known = this.#lanes.get(subject)
    if (known) return known
    const lane = { subject, rows: [], more: false, last: 0, moreEvents: false, position: 0, busy: false, dueAt: 0 }
    this.#lanes.set(subject, lane)
    return lane
  }

  /** Adds stored rows. They must come after all rows that were added before. */
  add(rows: readonly Waiting[], now: number): void {
    for (const row of rows) {
      const lane = this.#laneOf(row.subject)
      if (lane.more || lane.rows.length >= laneRows) {
        lane.more = true
        continue
      }
      lane.last = row.id
      this.#push(lane, row, now)
    }
  }

  /** Adds events. They must come after all events that were added before. */
  addEvents(events: readonly Waiting[], now: number): void {
    for (const event of events) {
      const lane = this.#laneOf(event.subject)
      if (lane.more || lane.moreEvents || lane.rows.length >= laneRows) {
        if (lane.position === 0) lane.position = event.position - 1
        lane.moreEvents = true
        continue
      }
      lane.position = event.position
      this.#push(lane, event, now)
    }
  }

  #push(lane: Lane, row: Waiting, now: number): void {
    lane.rows.push(row)
    // Only the first row of a lane determines its position among the lanes. For other rows, the lane would move behind younger
    // lanes.
    if (lane.rows.length > 1) return
    lane.dueAt = dueAtOf(row)
    this.#sort(lane, now)
  }

  /** Adds a subject that has untried events after a position. */
  addBehind(subject: string, position: number, now: number): void {
    const lane = this.#laneOf(subject)
    lane.moreEvents = true
    lane.position = position
    this.#sort(lane, now)
  }

  /** Lanes that have no rows in memory but have rows in the database, which the caller must read. */
  hungry(): Lane[] {
    return [...this.#hungry]
  }

  /** Adds the next stored rows to a lane without rows in memory, up to the row with the ID `last`. */
  feed(lane: Lane, rows: readonly Waiting[], more: boolean, now: number, last = rows.at(-1)?.id ?? lane.last): void {
    lane.rows.push(...rows)
    lane.more = more
    lane.last = last
    this.#settle(lane, now)
  }

  /** Adds the next events to a lane without rows in memory, up to a position. */
  feedEvents(lane: Lane, events: readonly Waiting[], position: number, more: boolean, now: number): void {
    lane.rows.push(...events)
    lane.moreEvents = more
    lane.position = position
    this.#settle(lane, now)
  }

  /**
   * Lanes whose first row can be sent now, the oldest lane first. A returned lane is busy until the caller reports the result.
   */
  take(limit: number, now: number): Lane[] {
    for (const lane of this.#resting) if (lane.dueAt <= now) this.#sort(lane, now)
    const taken: Lane[] = []
    for (const lane of this.#ready) {
      if (taken.length === limit) break
      taken.push(lane)
    }
    for (const lane of taken) {
      lane.busy = true
      this.#sort(lane, now)
    }
    return taken
  }

  /** If a sink fails for all subjects, returns the lane whose first row has the fewest attempts, even if the row is not due. */
  takeProbe(now: number): Lane[] {
    let least: Lane | undefined
    for (const lane of [...this.#ready, ...this.#resting]) {
      if (!least || lane.rows[0]!.attempts < least.rows[0]!.attempts) least = lane
    }
    if (!least) return []
    least.busy = true
    this.#sort(least, now)
    return [least]
  }

  /** Puts back a lane if its row was not sent. */
  putBack(lane: Lane, now: number): void {
    lane.busy = false
    this.#sort(lane, now)
  }

  /** Removes the first row of a lane after its last attempt. */
  done(lane: Lane, now: number): void {
    lane.busy = false
    const row = lane.rows.shift()
    this.#lastEnded = Math.max(this.#lastEnded, row?.position ?? 0)
    this.#settle(lane, now)
  }

  /** Updates a lane after its first row has changed. Removes the lane if it has no rows left. */
  #settle(lane: Lane, now: number): void {
    const first = lane.rows[0]
    lane.dueAt = first ? dueAtOf(first) : 0
    if (!first && !lane.more && !lane.moreEvents) this.#lanes.delete(lane.subject)
    this.#sort(lane, now)
  }

  /**
   * Keeps the first row for another attempt at `dueAt`. If the row is an event, its lane stays busy until the event's delivery is
   * stored.
   */
  retry(lane: Lane, dueAt: number, now: number): void {
    const row = lane.rows[0]!
    this.#lastEnded = Math.max(this.#lastEnded, row.position)
    row.position = 0
    row.attempts++
    lane.dueAt = dueAt
    lane.busy = row.id === 0
    this.#sort(lane, now)
  }

  /**
   * True if a stored row belongs to an event in memory whose ID is not known yet. A replay of the same event has no attempts, so
   * it does not match.
   */
  isBeingStored({ subject, event, attempts }: Waiting): boolean {
    if (attempts === 0) return false
    const first = this.#lanes.get(subject)?.rows[0]
    return first !== undefined && first.id === 0 && first.position === 0 && first.event === event
  }

  /** Sets the ID of the first row after the event's delivery was stored. */
  stored(lane: Lane, id: number, now: number): void {
    lane.rows[0]!.id = id
    lane.busy = false
    this.#sort(lane, now)
  }

  /** Removes the events up to a position. The caller must ensure that no request is in flight. */
  passOver(position: number, now: number): void {
    for (const lane of [...this.#lanes.values()]) {
      const left = lane.rows.filter((row) => row.position === 0 || row.position > position)
      if (lane.moreEvents) lane.position = Math.max(lane.position, position)
      if (left.length === lane.rows.length) continue
      const isFirst = left[0] === lane.rows[0]
      lane.rows = left
      if (!isFirst) this.#settle(lane, now)
    }
  }

  /** Makes all lanes due now that wait for a retry. */
  wake(now: number): void {
    for (const lane of this.#resting) {
      lane.dueAt = 0
      this.#sort(lane, now)
    }
  }

  /** Time at which the first lane that waits for a retry is due. Undefined if no lane waits. */
  nextDue(): number | undefined {
    let next: number | undefined
    for (const lane of this.#resting) if (next === undefined || lane.dueAt < next) next = lane.dueAt
    return next
  }
}

function dueAtOf({ nextTime }: Waiting): number {
  return nextTime === '' ? 0 : Date.parse(nextTime)
}
