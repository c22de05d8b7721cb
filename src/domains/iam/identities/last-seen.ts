import type { Db } from '#db/sql.ts'
import { setLastSeen } from './identities.store.ts'

/** Collects the times at which identities were last used. They are written together later. */
export type LastSeen = {
  note(identity: string, time: string): void
  /** Writes the collected times. Returns the number of updated identities. */
  flush(): Promise<number>
  close(): Promise<void>
}

const batch = 200

export function createLastSeen(db: Db, onError: (error: unknown) => void): LastSeen {
  let noted = new Map<string, string>()
  const flush = async (): Promise<number> => {
    // All servers write in the order of the uid, so that their transactions do not deadlock.
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
    return seen.length
  }
  return {
    note: (identity, time) => void noted.set(identity, time),
    flush,
    async close() {
      await flush().catch(onError)
    },
  }
}
