// Hold that stops garbage collection of the store while a command reads contents.
import { setInterval } from 'node:timers/promises'
import type { Skew } from '#db/skew.ts'
import type { Db } from '#db/sql.ts'
import { hold, release, renewHold } from '#domains/registry/blobs/locations.store.ts'

const tenMinutes = 10 * 60_000
const rowLocks = { isolation: 'rowLocks' } as const

export type Hold = {
  /** Rejects if the hold expired before it could be renewed, so garbage collection may have removed contents. */
  check(): Promise<void>
  end(): Promise<void>
}

/**
 * Prevents the removal of contents from the store until `end` is called. If the process dies, the hold expires after some time.
 * Throws if another process has a hold with this name.
 */
export async function holdContents(
  db: Db,
  skew: Pick<Skew, 'now' | 'measure'>,
  name: string,
  holdMs = tenMinutes,
): Promise<Hold> {
  let until = skew.now().getTime() + holdMs
  let hasLapsed = false
  const times = { now: skew.now().toISOString(), until: new Date(until).toISOString() }
  if (!(await db.tx((tx) => hold(tx, name, times), rowLocks))) {
    throw new Error(`another ${name} is running, or was killed within the last ten minutes; try again in ten minutes`)
  }
  const renew = async (): Promise<void> => {
    // After a suspend, the local clock does not show how long the machine slept, so the time of the database is read again.
    await skew.measure()
    const now = skew.now().getTime()
    hasLapsed ||= now >= until
    const next = new Date(now + holdMs).toISOString()
    if (await db.tx((tx) => renewHold(tx, name, next), rowLocks)) until = now + holdMs
    else hasLapsed = true
  }
  const ended = new AbortController()
  const renewing = (async () => {
    for await (const _ of setInterval(holdMs / 5, undefined, { signal: ended.signal, ref: false })) {
      // If the database is unavailable, the next renewal may still come before the hold expires.
      await renew().catch(() => {})
    }
  })().catch(() => {}) // `end` aborts the interval.
  return {
    async check() {
      await renew().catch(() => {})
      if (!hasLapsed && skew.now().getTime() < until) return
      throw new Error(
        'garbage collection was not stopped all the time, so some blobs may be missing; run the command again',
      )
    },
    async end() {
      ended.abort()
      await renewing
      await db.tx((tx) => release(tx, name), rowLocks)
    },
  }
}
