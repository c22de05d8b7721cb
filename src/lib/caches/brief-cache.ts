import { Newest } from './newest.ts'

/** Maximum age of an answer, so that a removal on another server counts within a second. */
export const briefMs = 500
const maxEntries = 10_000

/** Answers by key, each of them kept for a short time, so that many requests in a row ask the database once. */
export type Aged<T> = {
  /** The answer that is young enough or is being read. Reads it otherwise. An answer that fails is not kept. */
  of(key: string, read: () => Promise<T>): Promise<T>
  /** Clears the cache; results of reads in progress are not cached either. */
  clear(): void
}

/**
 * Callers who ask while an answer is read share it. With `rereads` they do not share one that is not kept, since it may be older
 * than a change that they have seen on another server.
 */
type Options = { ageMs?: number; entries?: number; rereads?: boolean }

/** `monotonic` returns milliseconds of a clock that never steps. `isKept` returns true for answers to cache. */
export function createAged<T>(
  monotonic: () => number,
  { ageMs = briefMs, entries: most = maxEntries, rereads = false }: Options = {},
  isKept: (found: T) => boolean = () => true,
): Aged<T> {
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

/** Cache for single values; a value is at most half a second old. */
export type BriefCache<T> = {
  of(key: string): Promise<T | undefined>
  clear(): void
}

/** `monotonic` gives milliseconds of a clock that never steps. A missing answer is not kept: it may exist at any moment. */
export function createBriefCache<T>(
  read: (key: string) => Promise<T | undefined>,
  monotonic: () => number,
): BriefCache<T> {
  const aged = createAged<T | undefined>(monotonic, {}, (one) => one !== undefined)
  return { of: (key) => aged.of(key, () => read(key)), clear: aged.clear }
}
