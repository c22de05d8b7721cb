import type { Db } from '#db/sql.ts'
import { createAged } from '#lib/caches/brief-cache.ts'
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

/**
 * Answers are at most half a second old, for whoever changes the database past the server. `monotonic` gives milliseconds of a
 * clock that never steps.
 */
export function createTagCache(db: Db, monotonic: () => number): TagCache {
  const cache = createAged<PulledAs | undefined>(monotonic, { rereads: true }, (found) => found !== undefined)
  return {
    of(repo, name) {
      const read = () => digestOf(db, repo.id, name)
      return db.engine === 'sqlite' ? cache.of(`${repo.id} ${name}`, read) : read()
    },
    clear: cache.clear,
  }
}
