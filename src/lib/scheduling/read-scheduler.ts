// Turns of organizations whose images or reports are read. After an image that took long, its organization pauses while others
// have something to read. Each node has its own state, in memory.
import { setTimeout as sleep } from 'node:timers/promises'

/** An image to read, or a document about an image. A document has an `id`. */
export type DueRead = { organization: string; repo: number; digest: string; id?: number }

export type ReadScheduler = {
  /** Chooses the image to read now. `due` has one image for each organization, in the order of their turns. */
  choose<T extends DueRead>(due: AsyncIterable<T>): Promise<T | undefined>
  /**
   * Reads an image with `work`. If that takes long and `othersWait` returns true, aborts the signal, and `work` has to put the
   * image back. The next read of the image is not interrupted.
   */
  take(read: DueRead, othersWait: () => Promise<boolean>, work: (giveWay: AbortSignal) => Promise<void>): Promise<void>
}

export type TurnLimits = {
  /** Milliseconds after which a read is interrupted if others wait. */
  giveWayMs: number
  /** Milliseconds of a read below which its organization does not pause. */
  shortMs: number
}
const turnLimits: TurnLimits = { giveWayMs: 30_000, shortMs: 1000 }
/** Limits for reports. Most reports take milliseconds, and none takes more than half a minute. */
export const reportTurnLimits: TurnLimits = { giveWayMs: 5_000, shortMs: 200 }

/** Duration of a pause, as a multiple of the time that the image took. So other organizations get three quarters of the time. */
const restTimes = 3
const mostPutBack = 10_000
const manyResting = 1000

/**
 * Creates the turns. `monotonic` returns milliseconds. An organization pauses only while others have images to read, so no time
 * is lost.
 */
export function createReadScheduler(monotonic: () => number, limits: TurnLimits = turnLimits): ReadScheduler {
  const restUntil = new Map<string, number>()
  const putBack = new Set<string>()

  const rest = (organization: string, usedMs: number): void => {
    if (usedMs < limits.shortMs) return
    const now = monotonic()
    if (restUntil.size > manyResting) {
      for (const [one, until] of restUntil) if (until <= now) restUntil.delete(one)
    }
    // Only the last image counts, so time used while nobody waited does not make a pause longer.
    restUntil.set(organization, now + restTimes * usedMs)
  }
  return {
    async choose<T extends DueRead>(due: AsyncIterable<T>) {
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
 * Yields the first due row of each organization. `nextBehind` returns the first row of the next organization. Starts with the
 * organizations after `after`, and then continues from the first one.
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

/** Aborts `giveWay` once the time has passed and others wait. `over` ends the wait. */
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
    // The read has ended, so nothing is aborted.
  }
}
