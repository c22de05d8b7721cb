// Pending deliveries and events of one subscription in the memory of its owner, with one lane for each subject. Within a lane,
// the order is kept; lanes do not wait for each other. Pure: the caller reads rows and passes the time.
import type { Waiting } from './deliveries.model.ts'

export type Lane = {
  subject: string
  rows: Waiting[]
  /** True if there are more rows after these, up to the caller's position of reading. */
  more: boolean
  /** ID of the last stored row in the lane. */
  last: number
  /** True if there are more events after `position`, up to the caller's position of reading. */
  moreEvents: boolean
  /** Position of the last event in the lane; 0 if none. */
  position: number
  busy: boolean
  /** Time from which the first row may be tried, in milliseconds. */
  dueAt: number
}

/** Most rows of one subject in memory. The rest is read again when these are finished. */
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

  /** Moves a lane to the set for its state, after the lanes that are there. */
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

  /** Adds stored rows that come after all rows added before. */
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

  /** Adds events that come after all events added before. */
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
    // Only a first row changes the place of the lane. Other rows would move it after younger lanes.
    if (lane.rows.length > 1) return
    lane.dueAt = dueAtOf(row)
    this.#sort(lane, now)
  }

  /** Adds a subject with events after a position. */
  addBehind(subject: string, position: number, now: number): void {
    const lane = this.#laneOf(subject)
    lane.moreEvents = true
    lane.position = position
    this.#sort(lane, now)
  }

  /** Lanes without rows in memory, for which the caller has to read more. */
  hungry(): Lane[] {
    return [...this.#hungry]
  }

  /** Adds the next stored rows of a hungry lane, up to the row with the ID `last`. */
  feed(lane: Lane, rows: readonly Waiting[], more: boolean, now: number, last = rows.at(-1)?.id ?? lane.last): void {
    lane.rows.push(...rows)
    lane.more = more
    lane.last = last
    this.#settle(lane, now)
  }

  /** Adds the next events of a hungry lane, up to a position. */
  feedEvents(lane: Lane, events: readonly Waiting[], position: number, more: boolean, now: number): void {
    lane.rows.push(...events)
    lane.moreEvents = more
    lane.position = position
    this.#settle(lane, now)
  }

  /** Lanes whose first row may be sent now, the oldest lane first. They are busy until the result is reported. */
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

  /** For a sink that fails as a whole: the lane with the least tried row, due or not. */
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

  /** Returns a lane that was taken without an attempt. */
  putBack(lane: Lane, now: number): void {
    lane.busy = false
    this.#sort(lane, now)
  }

  /** Removes the first row, which is finished. */
  done(lane: Lane, now: number): void {
    lane.busy = false
    const row = lane.rows.shift()
    this.#lastEnded = Math.max(this.#lastEnded, row?.position ?? 0)
    this.#settle(lane, now)
  }

  /** Updates a lane whose first row has changed. Removes a lane without remaining rows. */
  #settle(lane: Lane, now: number): void {
    const first = lane.rows[0]
    lane.dueAt = first ? dueAtOf(first) : 0
    if (!first && !lane.more && !lane.moreEvents) this.#lanes.delete(lane.subject)
    this.#sort(lane, now)
  }

  /** Keeps the first row, to retry it at `dueAt`. An event becomes a row only when it is stored; until then its lane is busy. */
  retry(lane: Lane, dueAt: number, now: number): void {
    const row = lane.rows[0]!
    this.#lastEnded = Math.max(this.#lastEnded, row.position)
    row.position = 0
    row.attempts++
    lane.dueAt = dueAt
    lane.busy = row.id === 0
    this.#sort(lane, now)
  }

  /** True if a stored row is that of an event in memory whose ID is not known yet. A replay of the event was never tried. */
  isBeingStored({ subject, event, attempts }: Waiting): boolean {
    if (attempts === 0) return false
    const first = this.#lanes.get(subject)?.rows[0]
    return first !== undefined && first.id === 0 && first.position === 0 && first.event === event
  }

  /** Sets the ID of the first row, an event that is now stored. */
  stored(lane: Lane, id: number, now: number): void {
    lane.rows[0]!.id = id
    lane.busy = false
    this.#sort(lane, now)
  }

  /** Removes the events up to a position. No request may be in flight. */
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

  /** Makes all waiting lanes due now. */
  wake(now: number): void {
    for (const lane of this.#resting) {
      lane.dueAt = 0
      this.#sort(lane, now)
    }
  }

  /** Time at which the first resting lane may send. Undefined if none rests. */
  nextDue(): number | undefined {
    let next: number | undefined
    for (const lane of this.#resting) if (next === undefined || lane.dueAt < next) next = lane.dueAt
    return next
  }
}

function dueAtOf({ nextTime }: Waiting): number {
  return nextTime === '' ? 0 : Date.parse(nextTime)
}
