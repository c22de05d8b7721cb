import { createRights, type RightsInput } from '#domains/iam/access/rights.ts'
import { AppError } from '#lib/errors.ts'
import { isAtOrBelow, lineage, top } from '#lib/uid.ts'

type Grants = RightsInput['grants']

/** A scope in which the identity has no grants. OAuth has a separate error for it. */
export class ScopeOutOfReach extends AppError {
  constructor() {
    super('PERMISSION_DENIED', 'the identity has no access to one of the groups in scope')
  }
}

/**
 * The `cap` claim of a new token: capability masks by group. Without scopes, all grants of the identity. With scopes, the
 * capabilities that apply at each scope, granted there or above, and the grants below. `kept` cuts every mask.
 */
export function narrow(
  identity: string,
  grants: Grants,
  scopes: readonly string[],
  kept: bigint | undefined,
): ReadonlyMap<string, bigint> {
  const held = createRights({ identity, grants }).places()
  const wide = scopes.length === 0 ? held : atScopes(held, [...new Set(scopes)])
  const cut = [...wide].map(([place, mask]) => [place, kept === undefined ? mask : mask & kept] as const)
  return new Map(cut.filter(([, mask]) => mask !== 0n))
}

/**
 * Shorter `cap` claim for a token that cannot name every group. With scopes, each scope has the union of its capabilities and all
 * below. Without scopes, the kept capabilities on everything, or undefined for no narrowing. Each request is also limited by the
 * present grants, so the token allows no more than `narrow`, except for grants added during its life.
 */
export function narrowBriefly(
  identity: string,
  grants: Grants,
  scopes: readonly string[],
  kept: bigint | undefined,
): ReadonlyMap<string, bigint> | undefined {
  if (scopes.length === 0) return kept === undefined ? undefined : new Map([[top, kept]])
  const full = narrow(identity, grants, scopes, kept)
  const brief = new Map<string, bigint>()
  for (const [place, mask] of full) {
    const scope = scopes.find((one) => isAtOrBelow(place, one))!
    brief.set(scope, (brief.get(scope) ?? 0n) | mask)
  }
  return brief
}

function atScopes(held: Grants, scopes: readonly string[]): Grants {
  const narrowed = new Map<string, bigint>()
  const highest = scopes.filter((scope) => !scopes.some((other) => other !== scope && isAtOrBelow(scope, other)))
  const reachable = (scope: string) =>
    [...held.keys()].some((place) => isAtOrBelow(scope, place) || isAtOrBelow(place, scope))
  if (!scopes.every(reachable)) throw new ScopeOutOfReach()
  const add = (place: string, mask: bigint) => narrowed.set(place, (narrowed.get(place) ?? 0n) | mask)
  for (const scope of highest) {
    const above = [top, ...lineage(scope)].reduce((mask, node) => mask | (held.get(node) ?? 0n), 0n)
    if (above !== 0n) add(scope, above)
    for (const [place, mask] of held) if (place !== scope && isAtOrBelow(place, scope)) add(place, mask)
  }
  return narrowed
}
