import type { Reader } from '#db/sql.ts'
import { createBriefCache } from '#lib/caches/brief-cache.ts'
import { listGrants } from '../roles/role-bindings.store.ts'
import { maskOf } from './capabilities.ts'
import type { GrantCache, Grants } from './grants.model.ts'
import { createRights } from './rights.ts'

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createGrantCache(reader: Reader, monotonic: () => number): GrantCache {
  return createBriefCache((identity) => loadGrants(reader, identity), monotonic)
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
