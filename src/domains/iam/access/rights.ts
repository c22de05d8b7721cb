import { isAtOrBelow, lineage, parentOf, top } from '#lib/uid.ts'
import { capabilities, everyCapability } from './capabilities.ts'
import type { Grants, Rights } from './grants.model.ts'

export type RightsInput = {
  /** Uid of the identity itself. An identity of a folder has no rights above that folder. */
  identity: string
  grants: Grants
  operator?: boolean
  /** The `cap` claim of the token. Capabilities that it does not name are not granted. Undefined if the token does not narrow. */
  narrowing?: Grants | undefined
  /** Organization whose identity provider vouches for the session. Grants outside of it do not count. Empty for no such limit. */
  within?: string
}

/**
 * Decides the rights of a caller: the union of grants on a group and above it. Grants are cut to the home of the identity, to the
 * organization of the session, and to the claims of the token.
 */
export function createRights({ identity, grants, operator = false, narrowing, within = '' }: RightsInput): Rights {
  const home = parentOf(identity)
  const held: Grants = operator
    ? new Map([[top, everyCapability]])
    : new Map([...grants].filter(([place]) => isAtOrBelow(place, home) && isAtOrBelow(place, within || top)))

  const covers = (place: string, need: bigint): boolean =>
    (unionAbove(held, place) & need) === need &&
    (narrowing === undefined || (unionAbove(narrowing, place) & need) === need)

  return {
    holds: (node, numbers) => {
      const need = strictMask(numbers)
      return need !== undefined && covers(node, need)
    },
    roots: (numbers) => {
      const need = strictMask(numbers)
      if (need === undefined) return []
      const places = new Set([top, ...held.keys(), ...(narrowing?.keys() ?? [])])
      return highest([...places].filter((place) => covers(place, need)))
    },
    places: () => {
      if (!narrowing) return held
      const both = new Set([...held.keys(), ...narrowing.keys()])
      const masks = [...both].map((place) => [place, unionAbove(held, place) & unionAbove(narrowing, place)] as const)
      return new Map(masks.filter(([, mask]) => mask !== 0n))
    },
  }
}

/** The same rights, but only where the caller holds `numbers` as well. */
export function onlyWith(rights: Rights, numbers: readonly number[]): Rights {
  return {
    holds: (node, more) => rights.holds(node, [...more, ...numbers]),
    roots: (more) => rights.roots([...more, ...numbers]),
    places: () => {
      const all = rights.places()
      const kept = [...new Set([...all.keys(), ...rights.roots(numbers)])].filter((place) =>
        rights.holds(place, numbers),
      )
      return new Map(kept.map((place) => [place, unionAbove(all, place)]))
    },
  }
}

/** Union of the grants of bindings and of the external groups of a session. */
export function withGranted(grants: Grants, granted: Grants | undefined): Grants {
  if (!granted || granted.size === 0) return grants
  const both = new Map(grants)
  for (const [place, mask] of granted) both.set(place, (both.get(place) ?? 0n) | mask)
  return both
}

/** Mask of capability numbers. Undefined if the contract does not have one of them, since nobody holds it. */
function strictMask(numbers: Iterable<number>): bigint | undefined {
  let mask = 0n
  for (const number of numbers) {
    const known = capabilities.get(number)
    if (!known) return undefined
    mask |= known.mask
  }
  return mask
}

function unionAbove(grants: Grants, place: string): bigint {
  let mask = grants.get(top) ?? 0n
  if (place === top || grants.size === 0) return mask
  for (const node of lineage(place)) mask |= grants.get(node) ?? 0n
  return mask
}

/** Removes every group that is below another one of the list. */
function highest(places: string[]): string[] {
  const kept: string[] = []
  for (const place of places.sort()) {
    const last = kept.at(-1)
    if (last === undefined || !isAtOrBelow(place, last)) kept.push(place)
  }
  return kept
}

export const noRights: Rights = { holds: () => false, roots: () => [], places: () => new Map() }
