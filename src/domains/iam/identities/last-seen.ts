import type { Db } from '#db/sql.ts'
import { setLastSeen } from './identities.store.ts'

/** Remembers when identities were last used, without a write for each use. */
export type LastSeen = {
  note(identity: string, time: string): void
  /** Writes what was noted; also done every half minute. */
  flush(): Promise<void>
  close(): Promise<void>
}

const flushMs = 30_000
const batch = 200

export function createLastSeen(db: Db, onError: (error: unknown) => void): LastSeen {
  let noted = new Map<string, string>()
  const flush = async (): Promise<void> => {
    // In the same order on every node, so that no two wait for each other's rows.
    const seen = [...noted].sort(([a], [b]) => (a < b ? -1 : 1))
    noted = new Map()
    for (let done = 0; done < seen.length; done += batch) {
      try {
        await db.tx(async (tx) => {
          for (const [identity, time] of seen.slice(done, done + batch)) await setLastSeen(tx, identity, time)
        })
      } catch (error) {
        noted = new Map([...seen.slice(done), ...noted])
        throw error
      }
    }
  }
  const timer = setInterval(() => void flush().catch(onError), flushMs)
  timer.unref()
  return {
    note: (identity, time) => void noted.set(identity, time),
    flush,
    async close() {
      clearInterval(timer)
      await flush().catch(onError)
    },
  }
}
