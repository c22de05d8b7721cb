// Cache of retention rules, tag rules, holds and quarantines, by organization. Their version is read at most twice a second.
import type { Reader } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { type ContentRules, noRules, sizeOf, toContentRules } from './retention.model.ts'
import { readContentRules, rulesVersion } from './retention.store.ts'

/** Maximum age of cached rules in ms, so that a change on another server takes effect within a second. */
const maxAgeMs = 500
/** Maximum size of the cache, in rules and patterns of all organizations. */
const maxSize = 200_000

/**
 * Rules of organizations, at most 0.5 s stale. After a commit that changed rules, only the rules of the changed organizations are
 * read again.
 */
export type ContentRulesCache = {
  /**
   * Returns the rules of the organization that contains `scope`. With `fresh`, first reads their version from the reader. A
   * transaction can pass itself as the reader. Rules that a transaction has read are not cached, because it may see old data or
   * be rolled back.
   */
  of(reader: Reader, scope: string, options?: { fresh: boolean }): Promise<ContentRules>
  /** True if a recent query found no rules, holds or quarantines in any organization. */
  isEmpty(): boolean
  clear(): void
}

type Entry = { contentRules: ContentRules; version: number; size: number; at: number; epoch: number }

/** Creates a cache. `monotonic` returns milliseconds of a clock that never goes back. */
export function createContentRulesCache(db: Reader, monotonic: () => number): ContentRulesCache {
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
    async of(reader, scope, { fresh } = { fresh: false }) {
      if (!fresh && isFresh(none)) return noRules
      const organization = rootOf(scope)
      const known = entries.get(organization)
      if (!fresh && known && known.epoch === epoch && isFresh(known.at)) return known.contentRules
      const [started, at] = [epoch, monotonic()]
      const { version, any } = await rulesVersion(reader, organization)
      // The version is read before the rules, so the rules can be newer than their version but never older.
      const contentRules =
        known?.version === version
          ? known.contentRules
          : version === 0
            ? noRules
            : toContentRules(await readContentRules(reader, organization))
      if (reader !== db) return contentRules
      if (!any && started === epoch) none = at
      else if (any) remember(organization, { contentRules, version, size: sizeOf(contentRules), at, epoch: started })
      return contentRules
    },
    isEmpty: () => isFresh(none),
    clear() {
      epoch++
      none = Number.NEGATIVE_INFINITY
    },
  }
}
