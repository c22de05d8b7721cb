import type { Reader } from '#db/sql.ts'
import { listGrants } from '../roles/role-bindings.store.ts'
import { maskOf } from './capabilities.ts'
import type { GrantCache, Grants } from './grants.model.ts'

/** How old a cached answer may be, so that a revocation on another node counts within a second. */
const maxAgeMs = 500
const maxEntries = 10_000

type Entry = { grants: Promise<Grants>; loadedAt: number }

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createGrantCache(reader: Reader, monotonic: () => number): GrantCache {
  const entries = new Map<string, Entry>()

  return {
    of(identity) {
      const now = monotonic()
      const cached = entries.get(identity)
      if (cached && now - cached.loadedAt < maxAgeMs) return cached.grants

      const entry = { grants: load(reader, identity), loadedAt: now }
      entries.delete(identity)
      entries.set(identity, entry)
      if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
      entry.grants.catch(() => {
        if (entries.get(identity) === entry) entries.delete(identity)
      })
      return entry.grants
    },
    clear: () => entries.clear(),
  }
}

async function load(reader: Reader, identity: string): Promise<Grants> {
  const grants = new Map<string, bigint>()
  for (const row of await listGrants(reader, identity)) {
    const mask = maskOf(JSON.parse(row.capabilities) as number[])
    grants.set(row.place, (grants.get(row.place) ?? 0n) | mask)
  }
  return grants
}
