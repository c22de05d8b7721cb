import type { Reader } from '#db/sql.ts'
import { listGrants } from '../roles/role-bindings.store.ts'
import { maskOf } from './capabilities.ts'
import type { GrantCache, Grants } from './grants.model.ts'
import { createRights } from './rights.ts'

/** How old a cached answer may be, so that a revocation on another node counts within a second. */
const maxAgeMs = 500
const maxEntries = 10_000

type Entry = { grants: Promise<Grants | undefined>; loadedAt: number }

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createGrantCache(reader: Reader, monotonic: () => number): GrantCache {
  const entries = new Map<string, Entry>()

  return {
    of(identity) {
      const now = monotonic()
      const cached = entries.get(identity)
      if (cached && now - cached.loadedAt < maxAgeMs) return cached.grants

      const entry = { grants: loadGrants(reader, identity), loadedAt: now }
      entries.delete(identity)
      entries.set(identity, entry)
      if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
      const forget = () => {
        if (entries.get(identity) === entry) entries.delete(identity)
      }
      // An identity that is not there may be made at any moment, on any node.
      entry.grants.then((grants) => grants ?? forget(), forget)
      return entry.grants
    },
    clear: () => entries.clear(),
  }
}

/** What an identity is bound to now; `undefined` when there is no such identity. */
export async function loadGrants(reader: Reader, identity: string): Promise<Grants | undefined> {
  const rows = await listGrants(reader, identity)
  if (!rows) return undefined
  const grants = new Map<string, bigint>()
  for (const row of rows) {
    const mask = maskOf(JSON.parse(row.capabilities) as number[])
    grants.set(row.place, (grants.get(row.place) ?? 0n) | mask)
  }
  return grants
}

/** Whether an identity holds all of the capabilities at a place by its bindings alone, without what a session adds. */
export async function holdsByBindings(
  reader: Reader,
  identity: string,
  place: string,
  capabilities: Iterable<number>,
): Promise<boolean> {
  const grants = await loadGrants(reader, identity)
  return grants !== undefined && createRights({ identity, grants }).holds(place, capabilities)
}
