import { Newest } from './newest.ts'

/** What was read for a key a moment ago, so that many requests in a row ask the database once. */
export type BriefCache<T> = {
  /** What was read less than `maxAgeMs` ago, or is being read; reads it otherwise. What fails or is missing is not kept. */
  of(key: string): Promise<T | undefined>
  /** Forgets everything, also what is being read. */
  clear(): void
}

/** How old an answer about rights may be, so that what another server takes away counts within a second. */
const maxAgeMs = 500
const maxEntries = 10_000

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createBriefCache<T>(
  read: (key: string) => Promise<T | undefined>,
  monotonic: () => number,
): BriefCache<T> {
  const entries = new Newest<string, { found: Promise<T | undefined>; readAt: number }>(maxEntries)

  return {
    of(key) {
      const now = monotonic()
      const kept = entries.get(key)
      if (kept && now - kept.readAt < maxAgeMs) return kept.found

      const entry = { found: read(key), readAt: now }
      entries.set(key, entry)
      const forget = (): void => {
        if (entries.get(key) === entry) entries.delete(key)
      }
      // What is not there may be made at any moment, on any server.
      entry.found.then((found) => found ?? forget(), forget)
      return entry.found
    },
    clear: () => entries.clear(),
  }
}
