import { isAtOrBelow, lineage, parentOf, top } from '#lib/uid.ts'
import { capabilities, everyCapability, withIncluded } from './capabilities.ts'
import type { Grants, Rights } from './grants.model.ts'

export type RightsInput = {
  /** Uid of the identity. An identity of a folder has no permissions above this folder. */
  identity: string
  grants: Grants
  operator?: boolean
  /**
   * Capabilities in the `cap` claim of the token. The caller holds no other capabilities. Undefined if the token has no such
   * claim.
   */
  narrowing?: Grants | undefined
  /** Organization to which the session is limited. Grants outside of it are ignored. Empty for no limit. */
  within?: string
}

/**
 * Computes the permissions of a caller. On a group, the caller holds the union of the grants there and above. The home group of
 * the identity, the organization of the session and the claims of the token limit them.
 */
export function createRights({ identity, grants, operator = false, narrowing, within = '' }: RightsInput): Rights {
  const home = parentOf(identity)
  const held: Grants = operator
    ? new Map([[top, everyCapability]])
    : new Map([...grants].filter(([scope]) => isAtOrBelow(scope, home) && isAtOrBelow(scope, within || top)))

  const covers = (scope: string, need: bigint): boolean =>
    (withIncluded(unionAbove(held, scope)) & need) === need &&
    (narrowing === undefined || (withIncluded(unionAbove(narrowing, scope)) & need) === need)

  return {
    holds: (node, numbers) => {
      const need = strictMask(numbers)
      return need !== undefined && covers(node, need)
    },
    roots: (numbers) => {
      const need = strictMask(numbers)
      if (need === undefined) return []
      const scopes = new Set([top, ...held.keys(), ...(narrowing?.keys() ?? [])])
      return highest([...scopes].filter((scope) => covers(scope, need)))
    },
    grants: () => {
      if (!narrowing) return held
      const both = new Set([...held.keys(), ...narrowing.keys()])
      const masks = [...both].map((scope) => [scope, unionAbove(held, scope) & unionAbove(narrowing, scope)] as const)
      return new Map(masks.filter(([, mask]) => mask !== 0n))
    },
  }
}

/** The same permissions, but only on groups on which the caller also holds `numbers`. */
export function onlyWith(rights: Rights, numbers: readonly number[]): Rights {
  return {
    holds: (node, more) => rights.holds(node, [...more, ...numbers]),
    roots: (more) => rights.roots([...more, ...numbers]),
    grants: () => {
      const all = rights.grants()
      const kept = [...new Set([...all.keys(), ...rights.roots(numbers)])].filter((scope) =>
        rights.holds(scope, numbers),
      )
      return new Map(kept.map((scope) => [scope, unionAbove(all, scope)]))
    },
  }
}

/** Union of the grants from bindings and the grants from external groups. */
export function withGranted(grants: Grants, granted: Grants | undefined): Grants {
  if (!granted || granted.size === 0) return grants
  const both = new Map(grants)
  for (const [scope, mask] of granted) both.set(scope, (both.get(scope) ?? 0n) | mask)
  return both
}

/** Mask of capability numbers. Undefined if the contract lacks one of them, since no caller can hold it. */
function strictMask(numbers: Iterable<number>): bigint | undefined {
  let mask = 0n
  for (const number of numbers) {
    const known = capabilities.get(number)
    if (!known) return undefined
    mask |= known.mask
  }
  return mask
}

function unionAbove(grants: Grants, scope: string): bigint {
  let mask = grants.get(top) ?? 0n
  if (scope === top || grants.size === 0) return mask
  for (const node of lineage(scope)) mask |= grants.get(node) ?? 0n
  return mask
}

/** Leaves out every group that is below another one in the list. */
function highest(scopes: string[]): string[] {
  const kept: string[] = []
  for (const scope of scopes.sort()) {
    const last = kept.at(-1)
    if (last === undefined || !isAtOrBelow(scope, last)) kept.push(scope)
  }
  return kept
}

export const noRights: Rights = { holds: () => false, roots: () => [], grants: () => new Map() }
