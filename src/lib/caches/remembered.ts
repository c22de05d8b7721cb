import { Newest } from './newest.ts'

/** Cache of results for one version of the data, for the keys that were used last. */
export type Remembered<T> = {
  /** Returns the cached result for the same key and version. Otherwise calls `work`. */
  of(key: string, version: number, work: () => Promise<T>): Promise<T>
}

/** Caches at most `most` answers. If it is full, the least recently used answer is removed. */
export function createRemembered<T>(most: number): Remembered<T> {
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
