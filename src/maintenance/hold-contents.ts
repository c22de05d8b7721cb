// Keeps the contents of the store while a command is at them.
import { setInterval } from 'node:timers/promises'
import type { Skew } from '#db/skew.ts'
import type { Db } from '#db/sql.ts'
import { hold, release, renewHold } from '#domains/registry/blobs/locations.store.ts'

const tenMinutes = 10 * 60_000
const rowLocks = { isolation: 'rowLocks' } as const

export type Hold = {
  /** Rejects where contents may have been removed since it began, because it could not be renewed in time. */
  check(): Promise<void>
  end(): Promise<void>
}

/**
 * Prevents the removal of contents from the store until it ends, or until some time after the process has ended. Throws if
 * another process holds them under this name.
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
    // A machine that has slept does not know for how long.
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
      // If the database is unavailable, the renewal is tried again; the database may be back in time.
      await renew().catch(() => {})
    }
  })().catch(() => {}) // It has ended.
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
