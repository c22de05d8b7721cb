// What the domains keep, and what follows from it for what is remembered.
import type { Change, Db } from './db/sql.ts'
import { domains } from './domains/domains.ts'
import type { CacheName, Resource } from './lib/resource.ts'

/** Every resource of the server. */
export const resources: readonly Resource[] = domains.flatMap((domain) => domain.resources)

/** Clears each cache after every commit that changes what it depends on. */
export function clearOnCommit(db: Db, caches: Record<CacheName, { clear(): void }>): void {
  const watched = Object.entries(caches).map(([name, cache]) => ({
    cache,
    changes: resources.flatMap(({ table, clears }) => {
      return (clears?.[name as CacheName] ?? []).map((verb): Change => `${verb} ${table}`)
    }),
  }))
  db.onCommit((committed) => {
    for (const { cache, changes } of watched) if (changes.some((one) => committed.has(one))) cache.clear()
  })
}
