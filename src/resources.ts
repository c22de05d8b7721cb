// What the domains keep, and what follows from it for what is remembered.
import type { Change, Db } from './db/sql.ts'
import { resources as events } from './domains/events/resources.ts'
import { resources as iam } from './domains/iam/resources.ts'
import { resources as libraries } from './domains/libraries/resources.ts'
import { resources as registry } from './domains/registry/resources.ts'
import { resources as scanning } from './domains/scanning/resources.ts'
import { resources as vulnerabilities } from './domains/vulnerabilities/resources.ts'
import type { CacheName, Resource } from './lib/resource.ts'

/** Every resource of the server; a new domain that has some is one line here. */
export const resources: readonly Resource[] = [
  ...iam,
  ...registry,
  ...vulnerabilities,
  ...scanning,
  ...libraries,
  ...events,
]

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
