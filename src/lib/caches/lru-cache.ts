import { Newest } from './newest.ts'

/** Cache of results for the most recently used keys. A result is valid for one version of the data. */
export type Remembered<T> = {
  /** Cached result for this key and version. Otherwise calls `work`. */
  of(key: string, version: number, work: () => Promise<T>): Promise<T>
}

/** Keeps at most `most` results. If the cache is full, the least recently used result is removed. */
export function createLruCache<T>(most: number): Remembered<T> {
  const kept = new Newest<string, { version: number; value: T }>(most)
  return {
    async of(key, version, work) {
      const found = kept.get(key)
      const fresh = found?.version === version ? found : { version, value: await work() }
      kept.set(key, fresh)
      return fresh.value
    },
  }
}
