// Turns of organizations whose images or reports are read, by consumed time: one whose image took long rests meanwhile. Each node
// has its own state, in memory.
import { setTimeout as sleep } from 'node:timers/promises'

/** An image to read, or a document about it with an `id` of its own. */
export type DueTurn = { organization: string; repo: number; digest: string; id?: number }

export type ReadTurns = {
  /** Chooses the image to read now from those that are due, one for each organization in the order of their turns. */
  choose<T extends DueTurn>(due: AsyncIterable<T>): Promise<T | undefined>
  /**
   * Lets an image be read. The signal is aborted when that takes long while `othersWait`; the image has then to be put
   * back, and when its turn comes again it is read without interruption.
   */
  take(read: DueTurn, othersWait: () => Promise<boolean>, work: (giveWay: AbortSignal) => Promise<void>): Promise<void>
}

export type TurnLimits = {
  /** Time in milliseconds for which an image is read while others wait. */
  giveWayMs: number
  /** An image that takes less time causes no rest. */
  shortMs: number
}
const turnLimits: TurnLimits = { giveWayMs: 30_000, shortMs: 1000 }
/** Most reports take milliseconds, and none more than half a minute. */
export const reportTurnLimits: TurnLimits = { giveWayMs: 5_000, shortMs: 200 }

/** An organization rests this many times as long as its image took, so that others have three quarters of the time. */
const restTimes = 3
const mostPutBack = 10_000
const manyResting = 1000

/** `monotonic` returns milliseconds. An organization rests only while others are there, so no time is lost. */
export function createReadTurns(monotonic: () => number, limits: TurnLimits = turnLimits): ReadTurns {
  const restUntil = new Map<string, number>()
  const putBack = new Set<string>()

  const rest = (organization: string, usedMs: number): void => {
    if (usedMs < limits.shortMs) return
    const now = monotonic()
    if (restUntil.size > manyResting) {
      for (const [one, until] of restUntil) if (until <= now) restUntil.delete(one)
    }
    // Only the last image counts: reading on while nobody waited uses up no later turn.
    restUntil.set(organization, now + restTimes * usedMs)
  }
  return {
    async choose<T extends DueTurn>(due: AsyncIterable<T>) {
      const now = monotonic()
      let soonest: { read: T; until: number } | undefined
      for await (const read of due) {
        const until = restUntil.get(read.organization) ?? 0
        if (until <= now) return read
        if (!soonest || until < soonest.until) soonest = { read, until }
      }
      return soonest?.read
    },
    async take(read, othersWait, work) {
      const key = `${read.repo} ${read.digest} ${read.id ?? ''}`
      const giveWay = new AbortController()
      const over = new AbortController()
      const began = monotonic()
      if (!putBack.has(key)) void abortInTime(giveWay, othersWait, limits.giveWayMs, over.signal)
      try {
        await work(giveWay.signal)
      } finally {
        over.abort()
        rest(read.organization, monotonic() - began)
        putBack.delete(key)
        if (giveWay.signal.aborted) putBack.add(key)
        if (putBack.size > mostPutBack) putBack.delete(putBack.values().next().value!)
      }
    },
  }
}

/**
 * First row that is due of each organization. `nextBehind` returns the first row of the next organization. Organizations behind
 * `after` come first.
 */
export async function* dueByOrganization<T extends { organization: string; dueTime: string }>(
  nextBehind: (organization: string) => Promise<T | undefined>,
  after: string,
  now: string,
): AsyncGenerator<T> {
  for (const [from, to] of [
    [after, undefined],
    ['', after],
  ] as const) {
    for (let last = from; to === undefined || last < to; ) {
      const next = await nextBehind(last)
      if (!next || (to !== undefined && next.organization > to)) break
      if (next.dueTime <= now) yield next
      last = next.organization
    }
  }
}

/** As soon as the time is over and others wait. */
async function abortInTime(
  giveWay: AbortController,
  othersWait: () => Promise<boolean>,
  ms: number,
  over: AbortSignal,
): Promise<void> {
  try {
    do await sleep(ms, undefined, { signal: over, ref: false })
    while (!(await othersWait().catch(() => false)))
    if (!over.aborted) giveWay.abort(new Error('other reads are waiting'))
  } catch {
    // It is over.
  }
}
