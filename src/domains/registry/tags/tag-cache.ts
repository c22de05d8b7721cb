import type { Db } from '#db/sql.ts'
import { createAged } from '#lib/caches/brief-cache.ts'
import type { TagRepo } from './tags.model.ts'
import { digestOf } from './tags.store.ts'

export type PulledAs = { digest: string; since: string }

/**
 * Digests of recently pulled tags, for an embedded database only. One process writes to it, and clears the cache with each commit
 * that changes a tag. Servers that share a database read it each time, since an assignment must be visible on all of them at
 * once.
 */
export type TagCache = {
  /** Digest of the tag and the time of its assignment. Returns undefined if there is no such tag, a result that is not cached. */
  of(repo: TagRepo, name: string): Promise<PulledAs | undefined>
  clear(): void
}

/**
 * Creates a cache whose entries are at most half a second old, in case another program changes the database. `monotonic` returns
 * milliseconds of a clock that never steps.
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
