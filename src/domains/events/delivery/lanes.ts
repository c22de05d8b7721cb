// The pending deliveries and events of one subscription, as far as its owner has read them: one lane for each subject.
// Within a lane nothing overtakes; lanes do not wait for each other. Pure: the caller reads rows and says what time it is.
import type { Waiting } from './deliveries.model.ts'

export type Lane = {
  subject: string
  rows: Waiting[]
  /** There are more rows behind those, no further than the caller has read. */
  more: boolean
  /** The id of the last stored row that the lane has taken. */
  last: number
  /** There are more events behind `position`, no further than the caller has read. */
  moreEvents: boolean
  /** The position of the last event that the lane has taken; 0 if none. */
  position: number
  busy: boolean
  /** When the first row may be tried, in milliseconds. */
  dueAt: number
}

/** How many rows of one subject are kept; the rest is read again when they are done. */
export const laneRows = 32

/** A class, since its state lives as long as the queue that it belongs to. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #ready = new Set<Lane>()
  readonly #resting = new Set<Lane>()
  readonly #hungry = new Set<Lane>()
  #lastEnded = 0

  /** The highest position of an event whose first attempt has ended. */
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

  /** Puts a lane into the one set that it belongs to now, behind those that are there. */
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

  /** Adds stored rows that stand behind all that were added before. */
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

  /** Adds events that stand behind all that were added before. */
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
    // Only a first row changes where the lane stands; others would move it behind lanes that are younger.
    if (lane.rows.length > 1) return
    lane.dueAt = dueAtOf(row)
    this.#sort(lane, now)
  }

  /** Adds a subject that has events behind a position. */
  addBehind(subject: string, position: number, now: number): void {
    const lane = this.#laneOf(subject)
    lane.moreEvents = true
    lane.position = position
    this.#sort(lane, now)
  }

  /** Lanes that have nothing left but what the caller has to read again. */
  hungry(): Lane[] {
    return [...this.#hungry]
  }

  /** The stored rows that a hungry lane had behind it, as far as the row with the id `last`. */
  feed(lane: Lane, rows: readonly Waiting[], more: boolean, now: number, last = rows.at(-1)?.id ?? lane.last): void {
    lane.rows.push(...rows)
    lane.more = more
    lane.last = last
    this.#settle(lane, now)
  }

  /** The events that a hungry lane had behind it, up to a position. */
  feedEvents(lane: Lane, events: readonly Waiting[], position: number, more: boolean, now: number): void {
    lane.rows.push(...events)
    lane.moreEvents = more
    lane.position = position
    this.#settle(lane, now)
  }

  /** The first rows of lanes that may send now, oldest lane first. The lanes are busy until they are told of the end. */
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

  /** For a sink that fails as a whole: the row that was tried least, due or not. */
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

  /** It was taken, and nothing was tried. */
  putBack(lane: Lane, now: number): void {
    lane.busy = false
    this.#sort(lane, now)
  }

  /** The first row is done with. */
  done(lane: Lane, now: number): void {
    lane.busy = false
    const row = lane.rows.shift()
    this.#lastEnded = Math.max(this.#lastEnded, row?.position ?? 0)
    this.#settle(lane, now)
  }

  /** Its first row has changed; a lane with nothing left is forgotten. */
  #settle(lane: Lane, now: number): void {
    const first = lane.rows[0]
    lane.dueAt = first ? dueAtOf(first) : 0
    if (!first && !lane.more && !lane.moreEvents) this.#lanes.delete(lane.subject)
    this.#sort(lane, now)
  }

  /** The first row stays, and waits. That of an event is a row only once it is stored: until then its lane is busy. */
  retry(lane: Lane, dueAt: number, now: number): void {
    const row = lane.rows[0]!
    this.#lastEnded = Math.max(this.#lastEnded, row.position)
    row.position = 0
    row.attempts++
    lane.dueAt = dueAt
    lane.busy = row.id === 0
    this.#sort(lane, now)
  }

  /** Whether a stored row is that of an event in hand which does not know its id yet. A replay of the event was never tried. */
  isBeingStored({ subject, event, attempts }: Waiting): boolean {
    if (attempts === 0) return false
    const first = this.#lanes.get(subject)?.rows[0]
    return first !== undefined && first.id === 0 && first.position === 0 && first.event === event
  }

  /** The first row, which was that of an event, is stored with this id. */
  stored(lane: Lane, id: number, now: number): void {
    lane.rows[0]!.id = id
    lane.busy = false
    this.#sort(lane, now)
  }

  /** Leaves out the events up to a position. Nothing may be on its way. */
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

  /** Nothing waits for a time any more. */
  wake(now: number): void {
    for (const lane of this.#resting) {
      lane.dueAt = 0
      this.#sort(lane, now)
    }
  }

  /** When the first resting lane may send; `undefined` when none rests. */
  nextDue(): number | undefined {
    let next: number | undefined
    for (const lane of this.#resting) if (next === undefined || lane.dueAt < next) next = lane.dueAt
    return next
  }
}

function dueAtOf({ nextTime }: Waiting): number {
  return nextTime === '' ? 0 : Date.parse(nextTime)
}
