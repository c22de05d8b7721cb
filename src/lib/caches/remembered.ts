/** What was worked out for a version of the data, for the keys that were asked last. */
export type Remembered<T> = {
  /** What `work` answered before for the same key and version, or answers now. */
  of(key: string, version: number, work: () => Promise<T>): Promise<T>
}

/** Keeps at most `most` answers; which are forgotten first is those that were not asked for the longest time. */
export function createRemembered<T>(most: number): Remembered<T> {
  const kept = new Map<string, { version: number; value: T }>()
  return {
    async of(key, version, work) {
      const found = kept.get(key)
      if (found) kept.delete(key)
      const fresh = found?.version === version ? found : { version, value: await work() }
      kept.delete(key)
      kept.set(key, fresh)
      if (kept.size > most) kept.delete(kept.keys().next().value!)
      return fresh.value
    },
  }
}
