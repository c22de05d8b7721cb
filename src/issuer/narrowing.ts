import { createRights, type RightsInput } from '#domains/iam/access/rights.ts'
import { AppError } from '#lib/errors.ts'
import { isAtOrBelow, lineage, top } from '#lib/uid.ts'

type Grants = RightsInput['grants']

/** A place where the identity holds nothing; OAuth has a word of its own for it. */
export class ScopeOutOfReach extends AppError {
  constructor() {
    super('PERMISSION_DENIED', 'a scope is beyond what the identity can reach')
  }
}

/**
 * The `cap` claim of a new token: capability masks by place. Without scopes it is all that the identity is bound to; with
 * scopes, what holds at each of them, whether bound there or above, and what is bound below. `kept` cuts every mask.
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
 * The same for a token that cannot name every place: what is held at a scope and anywhere below it, by the scope alone;
 * without scopes, what is kept of everything, or nothing that narrows. The rights of each request are cut to what is bound
 * where it looks, so such a token allows no more, but for what is bound while it lives.
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
