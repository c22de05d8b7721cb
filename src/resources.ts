// Tables and hooks of all domains, and the caches that are cleared when tables change.
import type { App } from './app.ts'
import type { Change, Db } from './db/sql.ts'
import { domains } from './domains/domains.ts'
import { joinHooks } from './hooks.ts'
import type { CacheName, Resource } from './lib/resource.ts'

/** Tables of all domains. */
export const resources: readonly Resource[] = domains.flatMap((domain) => domain.resources)

/** After each commit, clears the caches that contain data of changed tables. */
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

/** Adds the hooks of all domains to the application. */
export function withHooks<T extends Omit<App, 'hooks'>>(parts: T): T & App {
  const app = Object.assign(parts, { hooks: joinHooks([]) })
  app.hooks = joinHooks(domains.map(({ hooks }) => hooks?.(app) ?? {}))
  return app
}
