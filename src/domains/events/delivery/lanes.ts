// The waiting deliveries of one subscription, as far as its owner has read them: one lane for each subject. Within a lane
// nothing overtakes; lanes do not wait for each other. Pure: the caller reads rows and says what time it is.
import type { Waiting } from './deliveries.model.ts'

export type Lane = {
  subject: string
  rows: Waiting[]
  /** There are more rows behind those, no further than the caller has read. */
  more: boolean
  /** The id of the last row that the lane has taken. */
  last: number
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

  get size(): number {
    return this.#lanes.size
  }

  /** Whether a subject has rows in hand, or more to be read again. */
  has(subject: string): boolean {
    return this.#lanes.has(subject)
  }

  /** Whether at least so many rows are in hand. */
  hasRows(count: number): boolean {
    let rows = 0
    for (const lane of this.#lanes.values()) {
      rows += lane.rows.length
      if (rows >= count) return true
    }
    return false
  }

  get readyCount(): number {
    return this.#ready.size
  }

  /** Puts a lane into the one set that it belongs to now, behind those that are there. */
  #sort(lane: Lane, now: number): void {
    for (const set of [this.#ready, this.#resting, this.#hungry]) set.delete(lane)
    if (lane.busy) return
    if (lane.rows.length === 0) {
      if (lane.more) this.#hungry.add(lane)
    } else if (lane.dueAt <= now) this.#ready.add(lane)
    else this.#resting.add(lane)
  }

  /** Adds rows that stand behind all that were added before. */
  add(rows: readonly Waiting[], now: number): void {
    for (const row of rows) {
      const { subject } = row
      const lane = this.#lanes.get(subject) ?? { subject, rows: [], more: false, last: 0, busy: false, dueAt: 0 }
      this.#lanes.set(subject, lane)
      if (lane.more || lane.rows.length >= laneRows) {
        lane.more = true
        continue
      }
      lane.rows.push(row)
      lane.last = row.id
      // Only a first row changes where the lane stands; others would move it behind lanes that are younger.
      if (lane.rows.length > 1) continue
      lane.dueAt = dueAtOf(row)
      this.#sort(lane, now)
    }
  }

  /** Lanes that have nothing left but what the caller has to read again. */
  hungry(): Lane[] {
    return [...this.#hungry]
  }

  /** What a hungry lane had behind it. */
  feed(lane: Lane, rows: readonly Waiting[], more: boolean, now: number): void {
    lane.rows.push(...rows)
    lane.more = more
    lane.last = rows.at(-1)?.id ?? lane.last
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
    lane.rows.shift()
    this.#settle(lane, now)
  }

  /** Its first row has changed; a lane with nothing left is forgotten. */
  #settle(lane: Lane, now: number): void {
    const first = lane.rows[0]
    lane.dueAt = first ? dueAtOf(first) : 0
    if (!first && !lane.more) this.#lanes.delete(lane.subject)
    this.#sort(lane, now)
  }

  /** The first row stays, and waits. */
  retry(lane: Lane, dueAt: number, now: number): void {
    lane.busy = false
    lane.rows[0]!.attempts++
    lane.dueAt = dueAt
    this.#sort(lane, now)
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
