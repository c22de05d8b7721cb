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

export type Lanes = ReturnType<typeof createLanes>

export function createLanes() {
  const lanes = new Map<string, Lane>()
  const ready = new Set<Lane>()
  const resting = new Set<Lane>()
  const hungry = new Set<Lane>()

  const place = (lane: Lane, now: number): void => {
    for (const set of [ready, resting, hungry]) set.delete(lane)
    if (lane.busy) return
    if (lane.rows.length === 0) {
      if (lane.more) hungry.add(lane)
    } else if (lane.dueAt <= now) ready.add(lane)
    else resting.add(lane)
  }

  return {
    get size(): number {
      return lanes.size
    },

    get readyCount(): number {
      return ready.size
    },

    /** Adds rows that stand behind all that were added before. */
    add(rows: readonly Waiting[], now: number): void {
      for (const row of rows) {
        const { subject } = row
        const lane = lanes.get(subject) ?? { subject, rows: [], more: false, last: 0, busy: false, dueAt: 0 }
        lanes.set(subject, lane)
        if (lane.more || lane.rows.length >= laneRows) {
          lane.more = true
          continue
        }
        lane.rows.push(row)
        lane.last = row.id
        // Only a first row changes where the lane stands; others would move it behind lanes that are younger.
        if (lane.rows.length > 1) continue
        lane.dueAt = row.nextTime === '' ? 0 : Date.parse(row.nextTime)
        place(lane, now)
      }
    },

    /** Lanes that have nothing left but what the caller has to read again. */
    hungry: (): Lane[] => [...hungry],

    /** What a hungry lane had behind it. */
    feed(lane: Lane, rows: readonly Waiting[], more: boolean, now: number): void {
      lane.rows.push(...rows)
      lane.more = more
      lane.last = rows.at(-1)?.id ?? lane.last
      const first = lane.rows[0]
      lane.dueAt = first && first.nextTime !== '' ? Date.parse(first.nextTime) : 0
      if (!first && !more) lanes.delete(lane.subject)
      place(lane, now)
    },

    /** The first rows of lanes that may send now, oldest lane first. The lanes are busy until they are told of the end. */
    take(limit: number, now: number): Lane[] {
      for (const lane of resting) if (lane.dueAt <= now) place(lane, now)
      const taken: Lane[] = []
      for (const lane of ready) {
        if (taken.length === limit) break
        taken.push(lane)
      }
      for (const lane of taken) {
        lane.busy = true
        place(lane, now)
      }
      return taken
    },

    /** For a sink that fails as a whole: the row that was tried least, due or not. */
    takeProbe(now: number): Lane[] {
      let least: Lane | undefined
      for (const lane of [...ready, ...resting]) {
        if (!least || lane.rows[0]!.attempts < least.rows[0]!.attempts) least = lane
      }
      if (!least) return []
      least.busy = true
      place(least, now)
      return [least]
    },

    /** It was taken, and nothing was tried. */
    putBack(lane: Lane, now: number): void {
      lane.busy = false
      place(lane, now)
    },

    /** The first row is done with. */
    done(lane: Lane, now: number): void {
      lane.busy = false
      lane.rows.shift()
      const next = lane.rows[0]
      lane.dueAt = next && next.nextTime !== '' ? Date.parse(next.nextTime) : 0
      if (!next && !lane.more) lanes.delete(lane.subject)
      place(lane, now)
    },

    /** The first row stays, and waits. */
    retry(lane: Lane, dueAt: number, now: number): void {
      lane.busy = false
      lane.rows[0]!.attempts++
      lane.dueAt = dueAt
      place(lane, now)
    },

    /** Nothing waits for a time any more. */
    wake(now: number): void {
      for (const lane of resting) {
        lane.dueAt = 0
        place(lane, now)
      }
    },

    /** When the first resting lane may send; `undefined` when none rests. */
    nextDue(): number | undefined {
      let next: number | undefined
      for (const lane of resting) if (next === undefined || lane.dueAt < next) next = lane.dueAt
      return next
    },
  }
}
