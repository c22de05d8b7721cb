// Whether the session of an access token has been ended, read at most twice a second as the bindings are.
import type { Reader } from '#db/sql.ts'
import type { CachedSessions } from './sessions.model.ts'
import { findSession } from './sessions.store.ts'

const maxAgeMs = 500
const maxEntries = 10_000

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createLiveSessions(reader: Reader, monotonic: () => number): CachedSessions {
  const entries = new Map<string, { found: Promise<boolean>; loadedAt: number }>()
  return {
    isThere(uid) {
      const now = monotonic()
      const cached = entries.get(uid)
      if (cached && now - cached.loadedAt < maxAgeMs) return cached.found
      const entry = { found: findSession(reader, uid).then((session) => session !== undefined), loadedAt: now }
      entries.delete(uid)
      entries.set(uid, entry)
      if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
      entry.found.catch(() => {
        if (entries.get(uid) === entry) entries.delete(uid)
      })
      return entry.found
    },
    clear: () => entries.clear(),
  }
}
