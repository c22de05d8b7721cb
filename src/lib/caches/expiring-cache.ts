import { Newest } from './newest.ts'

/** Cache with a maximum size. Each entry expires at the time that is set with it. */
export type ExpiringCache<T> = {
  /** Value of a key. `undefined` if it is missing or has expired. */
  get(key: string, now: number): T | undefined
  set(key: string, value: T, until: number): void
}

/** Keeps at most `most` entries. If the cache is full, the entry that was set first is removed. */
export function createExpiringCache<T>(most: number): ExpiringCache<T> {
  const kept = new Newest<string, { value: T; until: number }>(most)
  return {
    get(key, now) {
      const found = kept.get(key)
      if (!found) return undefined
      if (found.until > now) return found.value
      kept.delete(key)
      return undefined
    },
    set: (key, value, until) => void kept.set(key, { value, until }),
  }
}
