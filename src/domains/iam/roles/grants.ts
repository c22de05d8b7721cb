import type { Caller } from '#caller.ts'
import type { Reader } from '#db/sql.ts'
import { createShortLivedCache } from '#lib/caches/short-lived-cache.ts'
import { failedPrecondition } from '#lib/errors.ts'
import { maskOf } from '../access/capabilities.ts'
import type { GrantCache, Grants } from '../access/grants.model.ts'
import { createRights } from '../access/rights.ts'
import { listGrants } from '../identities/identities.store.ts'

/** Creates the cache. `monotonic` returns milliseconds of a clock that is never adjusted. */
export function createGrantCache(reader: Reader, monotonic: () => number): GrantCache {
  return createShortLivedCache((identity) => loadGrants(reader, identity), monotonic)
}

/** Grants from the accepted bindings of an identity. Undefined if the identity does not exist. */
async function loadGrants(reader: Reader, identity: string): Promise<Grants | undefined> {
  const rows = await listGrants(reader, identity)
  return rows && grantsOf(rows)
}

/** Combines roles into grants. Each role has its group, and its capability numbers as JSON. */
export function grantsOf(roles: readonly { scope: string; capabilities: string }[]): Grants {
  const grants = new Map<string, bigint>()
  for (const { scope, capabilities } of roles) {
    const mask = maskOf(JSON.parse(capabilities) as number[])
    grants.set(scope, (grants.get(scope) ?? 0n) | mask)
  }
  return grants
}

/**
 * Throws FAILED_PRECONDITION unless the caller's bindings grant these capabilities. Roles from external groups are not
 * sufficient, since they end with the session. `purpose` is the end of the error message.
 */
export async function requireLasting(
  reader: Reader,
  caller: Caller,
  group: string,
  capabilities: Iterable<number>,
  purpose: string,
): Promise<void> {
  if (caller.operator || (await holdsByBindings(reader, caller.uid, group, capabilities))) return
  throw failedPrecondition({
    type: 'SESSION_RIGHTS',
    subject: group,
    description: `you have these rights only in this session, through an external group; ${purpose} by a role binding`,
  })
}

/** True if the bindings of an identity grant all of the capabilities on a group. Roles from external groups are ignored. */
export async function holdsByBindings(
  reader: Reader,
  identity: string,
  scope: string,
  capabilities: Iterable<number>,
): Promise<boolean> {
  const grants = await loadGrants(reader, identity)
  return grants !== undefined && createRights({ identity, grants }).holds(scope, capabilities)
}
