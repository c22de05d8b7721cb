// Resources and hooks of all domains, and the caches that their changes clear.
import type { App } from './app.ts'
import type { Change, Db } from './db/sql.ts'
import { domains } from './domains/domains.ts'
import { joinHooks } from './hooks.ts'
import type { CacheName, Resource } from './lib/resource.ts'

/** All resources of the server. */
export const resources: readonly Resource[] = domains.flatMap((domain) => domain.resources)

/** Clears each cache after every commit that changes its data. */
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

/** Adds the hooks of the domains to the application that they use. */
export function withHooks<T extends Omit<App, 'hooks'>>(parts: T): T & App {
  const app = Object.assign(parts, { hooks: joinHooks([]) })
  app.hooks = joinHooks(domains.map(({ hooks }) => hooks?.(app) ?? {}))
  return app
}
