import type { Db } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import type { TagRepo } from './tags.model.ts'
import { digestOf } from './tags.store.ts'

export type PulledAs = { digest: string; since: string }

/**
 * Where tags that were pulled lately point to, on an embedded database: one process alone writes to it, and forgets all of them
 * with each commit that changes one. Servers that share a database ask it each time, since a move counts at once on all of them.
 */
export type TagCache = {
  /** Where the tag points, and since when; `undefined` when there is no such tag, which is not remembered. */
  of(repo: TagRepo, name: string): Promise<PulledAs | undefined>
  clear(): void
}

/** How old an answer may be: for whoever changes the database past the server. */
const maxAgeMs = 500
const maxEntries = 10_000

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createTagCache(db: Db, monotonic: () => number): TagCache {
  const entries = new Newest<string, PulledAs & { at: number }>(maxEntries)
  let epoch = 0
  return {
    async of(repo, name) {
      if (db.engine !== 'sqlite') return digestOf(db, repo.id, name)
      const key = `${repo.id} ${name}`
      const [known, now] = [entries.get(key), monotonic()]
      if (known && now - known.at < maxAgeMs) return known
      const started = epoch
      const found = await digestOf(db, repo.id, name)
      if (found && started === epoch) entries.set(key, { ...found, at: now })
      return found
    },
    clear() {
      epoch++
      entries.clear()
    },
  }
}
