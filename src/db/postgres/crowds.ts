// Limits on transactions of this process that lock the same row. Each would wait for the lock with a connection of its own, until
// no connections are left for other transactions. So only a few enter at one place, and at all places together; the others wait
// here.
import { busy } from '#lib/errors.ts'
import type { Meeting } from '../sql.ts'

/**
 * Thrown when the transaction has to give its connection back, and to run again once `Turn.wait` has resolved. Not an Error,
 * since its stack would be useless, and would cost more than the rest.
 */
export class Crowded implements Meeting {
  readonly place: string
  readonly most: number

  constructor({ place, most }: Meeting) {
    this.place = place
    this.most = most
  }
}

/** Places that one transaction holds, however often it runs. */
export type Turn = {
  /** Throws Crowded if the place is full, if too many are inside at all places together, or if others came first. */
  enter(meeting: Meeting): void
  /**
   * Leaves its places, and waits for its turn. Rejects with UNAVAILABLE if too many wait, or if all waits of the transaction
   * together take too long. A transaction that needs two places may wait for each of them repeatedly.
   */
  wait(crowded: Crowded): Promise<void>
  leave(): void
}

type Place = { inside: number; waiting: (() => void)[] }

export type Crowds = {
  /** The most transactions inside, at all places together. */
  mostInside: number
  /** The most transactions that wait for one place, or for any. */
  mostWaiting: number
  /** Milliseconds that a transaction may wait in total, from its first wait. */
  waitMs: number
  monotonic?: () => number
}

/** Name of the limit for all places together. */
const anywhere = ''

export function createCrowds({
  mostInside,
  mostWaiting,
  waitMs,
  monotonic = () => performance.now(),
}: Crowds): () => Turn {
  const places = new Map<string, Place>()
  const everybody = { place: anywhere, most: mostInside }

  const leave = (name: string): void => {
    const place = places.get(name)!
    const next = place.waiting.shift()
    // The next one takes the place of the one that leaves, so that no newcomer gets ahead.
    if (next) next()
    else if (--place.inside === 0) places.delete(name)
  }

  return () => {
    const held = new Set<string>()
    let until: number | undefined
    const leaveAll = (): void => {
      for (const name of held) leave(name)
      held.clear()
    }
    const enter = (meeting: Meeting): void => {
      const { place: name, most } = meeting
      if (held.has(name)) return
      const place = places.get(name) ?? { inside: 0, waiting: [] }
      if (place.inside >= most || place.waiting.length > 0) throw new Crowded(meeting)
      place.inside++
      places.set(name, place)
      held.add(name)
    }
    return {
      enter(meeting) {
        enter(meeting)
        enter(everybody)
      },
      async wait({ place: name, most }) {
        // A transaction that waits while it holds a place could cause a deadlock, so it leaves all places first. Transactions
        // inside wait for no place, so one that only waits for the total limit keeps its places.
        if (name !== anywhere) leaveAll()
        const now = monotonic()
        until ??= now + waitMs
        if (now >= until) throw tooMany()
        const place = places.get(name)
        if (!place || place.inside < most) return
        if (place.waiting.length >= mostWaiting) throw tooMany()
        await new Promise<void>((resolve, reject) => {
          const go = (): void => {
            clearTimeout(timer)
            held.add(name)
            resolve()
          }
          const timer = setTimeout(() => {
            place.waiting.splice(place.waiting.indexOf(go), 1)
            reject(tooMany())
          }, until! - now)
          place.waiting.push(go)
        })
      },
      leave: leaveAll,
    }
  }
}

const tooMany = () => busy('too many writes to the same part of the database are waiting; try again')
