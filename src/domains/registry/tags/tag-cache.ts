import type { Db } from '#db/sql.ts'
import { createSharedResults } from '#lib/caches/short-lived-cache.ts'
import type { TagRepo } from './tags.model.ts'
import { digestOf } from './tags.store.ts'

export type PulledAs = { digest: string; since: string }

/**
 * Cache of digests of recently pulled tags, for an embedded database only. There, one process writes to the database, and each
 * commit that changes a tag clears the cache. Servers that share a database read the tag for each pull, since an assignment must
 * be visible on all servers at once.
 */
export type TagCache = {
  /** Digest of the tag and the time of its assignment. Returns undefined if there is no such tag. A missing tag is not cached. */
  of(repo: TagRepo, name: string): Promise<PulledAs | undefined>
  clear(): void
}

/**
 * Creates a cache. Entries are at most half a second old, in case another program changes the database. `monotonic` returns
 * milliseconds of a clock that never jumps.
 */
export function createTagCache(db: Db, monotonic: () => number): TagCache {
  const cache = createSharedResults<PulledAs | undefined>(monotonic, { rereads: true }, (found) => found !== undefined)
  return {
    of(repo, name) {
      const read = () => digestOf(db, repo.id, name)
      return db.engine === 'sqlite' ? cache.of(`${repo.id} ${name}`, read) : read()
    },
    clear: cache.clear,
  }
}
