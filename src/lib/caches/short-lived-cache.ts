import { Newest } from './newest.ts'

/** Maximum age of a cached result in milliseconds, so that a deletion on another server takes effect within a second. */
export const maxStaleMs = 500
const maxEntries = 10_000

/** Results by key, each cached for a short time, so that many requests in a row need one database query. */
export type SharedResults<T> = {
  /** Cached result, or the result of a read in progress. Otherwise calls `read`. A failure is not cached. */
  of(key: string, read: () => Promise<T>): Promise<T>
  /** Clears the cache. Results of reads in progress are not cached either. */
  clear(): void
}

/**
 * Callers share a read in progress. With `rereads`, they do not share a result that is not cached. It may be older than a change
 * that they have seen on another server.
 */
type Options = { ageMs?: number; entries?: number; rereads?: boolean }

/** `monotonic` returns milliseconds of a clock that is never set. `isKept` returns true for results to cache. */
export function createSharedResults<T>(
  monotonic: () => number,
  { ageMs = maxStaleMs, entries: most = maxEntries, rereads = false }: Options = {},
  isKept: (found: T) => boolean = () => true,
): SharedResults<T> {
  const entries = new Newest<string, { found: Promise<T>; readAt: number }>(most)

  return {
    of(key, read) {
      const now = monotonic()
      const kept = entries.get(key)
      if (kept && now - kept.readAt < ageMs) {
        return rereads ? kept.found.then((found) => (isKept(found) ? found : read())) : kept.found
      }

      const entry = { found: read(), readAt: now }
      entries.set(key, entry)
      const forget = (): void => {
        if (entries.get(key) === entry) entries.delete(key)
      }
      entry.found.then((found) => isKept(found) || forget(), forget)
      return entry.found
    },
    clear: () => entries.clear(),
  }
}

/** Cache of single values, which are at most half a second old. */
export type ShortLivedCache<T> = {
  of(key: string): Promise<T | undefined>
  clear(): void
}

/**
 * `monotonic` returns milliseconds of a clock that is never set. Missing values are not cached, since they may be created at any
 * moment.
 */
export function createShortLivedCache<T>(
  read: (key: string) => Promise<T | undefined>,
  monotonic: () => number,
): ShortLivedCache<T> {
  const aged = createSharedResults<T | undefined>(monotonic, {}, (one) => one !== undefined)
  return { of: (key) => aged.of(key, () => read(key)), clear: aged.clear }
}
