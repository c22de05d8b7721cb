// Whether the session of an access token has been ended, read at most twice a second as the bindings are.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { type CachedSessions, isStillTrusted, type LiveSession } from './sessions.model.ts'
import { findSession } from './sessions.store.ts'

const maxAgeMs = 500
const maxEntries = 10_000

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createLiveSessions(
  reader: Reader,
  config: Pick<App['config'], 'peopleIssuers'>,
  monotonic: () => number,
): CachedSessions {
  const entries = new Map<string, { found: Promise<LiveSession | undefined>; loadedAt: number }>()
  const load = (uid: string): Promise<LiveSession | undefined> => {
    const now = monotonic()
    const cached = entries.get(uid)
    if (cached && now - cached.loadedAt < maxAgeMs) return cached.found
    const entry = { found: read(reader, uid), loadedAt: now }
    entries.delete(uid)
    entries.set(uid, entry)
    if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
    entry.found.catch(() => {
      if (entries.get(uid) === entry) entries.delete(uid)
    })
    return entry.found
  }
  return {
    async of(uid) {
      const session = await load(uid)
      return session && isStillTrusted(session, config.peopleIssuers) ? session : undefined
    },
    clear: () => entries.clear(),
  }
}

/** No more of it than is needed, since many are kept. */
async function read(reader: Reader, uid: string): Promise<LiveSession | undefined> {
  const session = await findSession(reader, uid)
  if (!session) return undefined
  const { provider, organization, act, granted } = session
  return { provider, organization, act, granted }
}
