import { withIncluded } from '#domains/iam/access/capabilities.ts'
import { createRights, type RightsInput } from '#domains/iam/access/rights.ts'
import { AppError } from '#lib/errors.ts'
import { isAtOrBelow, lineage, top } from '#lib/uid.ts'

type Grants = RightsInput['grants']

/** Error for a requested scope in which the identity has no grants. OAuth clients get the code `invalid_scope` for it. */
export class ScopeOutOfReach extends AppError {
  constructor() {
    super('PERMISSION_DENIED', 'the identity has no access to one of the groups in scope')
  }
}

/**
 * Capability masks by group for the `cap` claim of a new token. Without scopes, they are all grants of the identity. With scopes,
 * they are the capabilities that apply at each scope and the grants below it. `kept` limits each mask.
 */
export function narrow(
  identity: string,
  grants: Grants,
  scopes: readonly string[],
  kept: bigint | undefined,
): ReadonlyMap<string, bigint> {
  const held = createRights({ identity, grants }).grants()
  const wide = scopes.length === 0 ? held : atScopes(held, [...new Set(scopes)])
  const cut = [...wide].map(([group, mask]) => [group, kept === undefined ? mask : withIncluded(mask) & kept] as const)
  return new Map(cut.filter(([, mask]) => mask !== 0n))
}

/**
 * Shorter `cap` claim, for a token that cannot list every group. With scopes, the mask of each scope also has the capabilities
 * that are granted only below it. Without scopes, the mask `kept` applies to all groups; undefined if no capabilities were
 * requested. Each request is also checked against the current grants. So the token allows the same as with `narrow`, plus grants
 * that are added during its lifetime.
 */
export function narrowCompactly(
  identity: string,
  grants: Grants,
  scopes: readonly string[],
  kept: bigint | undefined,
): ReadonlyMap<string, bigint> | undefined {
  if (scopes.length === 0) return kept === undefined ? undefined : new Map([[top, kept]])
  const full = narrow(identity, grants, scopes, kept)
  const brief = new Map<string, bigint>()
  for (const [group, mask] of full) {
    const scope = scopes.find((one) => isAtOrBelow(group, one))!
    brief.set(scope, (brief.get(scope) ?? 0n) | mask)
  }
  return brief
}

function atScopes(held: Grants, scopes: readonly string[]): Grants {
  const narrowed = new Map<string, bigint>()
  const highest = scopes.filter((scope) => !scopes.some((other) => other !== scope && isAtOrBelow(scope, other)))
  const reachable = (scope: string) =>
    [...held.keys()].some((group) => isAtOrBelow(scope, group) || isAtOrBelow(group, scope))
  if (!scopes.every(reachable)) throw new ScopeOutOfReach()
  const add = (group: string, mask: bigint) => narrowed.set(group, (narrowed.get(group) ?? 0n) | mask)
  for (const scope of highest) {
    const above = [top, ...lineage(scope)].reduce((mask, node) => mask | (held.get(node) ?? 0n), 0n)
    if (above !== 0n) add(scope, above)
    for (const [group, mask] of held) if (group !== scope && isAtOrBelow(group, scope)) add(group, mask)
  }
  return narrowed
}
