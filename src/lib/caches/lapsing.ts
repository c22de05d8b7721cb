import { Newest } from './newest.ts'

/** Bounded cache whose entries expire at a time that is set with them. */
export type Lapsing<T> = {
  /** `undefined` once it has lapsed. */
  get(key: string, now: number): T | undefined
  set(key: string, value: T, until: number): void
}

/** Keeps at most `most` entries. If it is full, the entry that was set first is removed. */
export function createLapsing<T>(most: number): Lapsing<T> {
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
