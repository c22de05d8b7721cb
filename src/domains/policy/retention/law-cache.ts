// Cache of retention rules, tag rules, holds and quarantines, by organization. Their version is read at most twice a second.
import type { Reader } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { type Law, lawFrom, noRules, sizeOf } from './retention.model.ts'
import { lawVersion, readLaw } from './retention.store.ts'

/** Maximum age of cached rules in ms, so that a change on another server takes effect within a second. */
const maxAgeMs = 500
/** Maximum size of the cache, in rules and patterns of all organizations. */
const maxSize = 200_000

/**
 * Rules of organizations, at most 0.5 s stale. After a commit that changed rules, only the rules of the changed organizations are
 * read again.
 */
export type LawCache = {
  /**
   * Returns the rules of the organization that contains `place`. With `fresh`, first reads their version from the reader. A
   * transaction can pass itself as the reader. Rules that a transaction has read are not cached, because it may see old data or
   * be rolled back.
   */
  of(reader: Reader, place: string, options?: { fresh: boolean }): Promise<Law>
  /** True if a recent query found no rules, holds or quarantines in any organization. */
  isEmpty(): boolean
  clear(): void
}

type Entry = { law: Law; version: number; size: number; at: number; epoch: number }

/** Creates a cache. `monotonic` returns milliseconds of a clock that never goes back. */
export function createLawCache(db: Reader, monotonic: () => number): LawCache {
  const entries = new Map<string, Entry>()
  let size = 0
  let none = Number.NEGATIVE_INFINITY
  let epoch = 0
  const isFresh = (at: number): boolean => monotonic() - at < maxAgeMs

  function forget(organization: string): void {
    size -= entries.get(organization)?.size ?? 0
    entries.delete(organization)
  }

  function remember(organization: string, entry: Entry): void {
    forget(organization)
    if (entry.size > maxSize) return
    entries.set(organization, entry)
    size += entry.size
    while (size > maxSize) forget(entries.keys().next().value!)
  }

  return {
    async of(reader, place, { fresh } = { fresh: false }) {
      if (!fresh && isFresh(none)) return noRules
      const organization = rootOf(place)
      const known = entries.get(organization)
      if (!fresh && known && known.epoch === epoch && isFresh(known.at)) return known.law
      const [started, at] = [epoch, monotonic()]
      const { version, any } = await lawVersion(reader, organization)
      // The version is read before the rules, so the rules can be newer than their version but never older.
      const law =
        known?.version === version ? known.law : version === 0 ? noRules : lawFrom(await readLaw(reader, organization))
      if (reader !== db) return law
      if (!any && started === epoch) none = at
      else if (any) remember(organization, { law, version, size: sizeOf(law), at, epoch: started })
      return law
    },
    isEmpty: () => isFresh(none),
    clear() {
      epoch++
      none = Number.NEGATIVE_INFINITY
    },
  }
}
