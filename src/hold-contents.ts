// Keeps the contents of the store while a command is at them.
import { setInterval } from 'node:timers/promises'
import type { Skew } from './db/skew.ts'
import type { Db } from './db/sql.ts'
import { hold, release, renewHold } from './domains/registry/blobs/holds.store.ts'

const holdMs = 10 * 60_000
const rowLocks = { isolation: 'rowLocks' } as const

/**
 * Until it ends, or the process has been gone for a while, nothing is removed from the store. Throws where somebody else
 * holds them under this name.
 */
export async function holdContents(db: Db, skew: Skew, name: string): Promise<{ end(): Promise<void> }> {
  const times = () => {
    const now = skew.now()
    return { now: now.toISOString(), until: new Date(now.getTime() + holdMs).toISOString() }
  }
  if (!(await db.tx((tx) => hold(tx, name, times()), rowLocks))) {
    throw new Error(`another ${name} is at work, or was killed within the last ten minutes; try again later`)
  }
  const ended = new AbortController()
  const renewing = (async () => {
    for await (const _ of setInterval(holdMs / 5, undefined, { signal: ended.signal, ref: false })) {
      await db.tx((tx) => renewHold(tx, name, times().until), rowLocks)
    }
  })().catch(() => {}) // Either it has ended, or the database is away, which whoever works finds out.
  return {
    async end() {
      ended.abort()
      await renewing
      await db.tx((tx) => release(tx, name), rowLocks)
    },
  }
}
