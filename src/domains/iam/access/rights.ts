import { isAtOrBelow, lineage, parentOf, top } from '#lib/uid.ts'
import { capabilities, everyCapability } from './capabilities.ts'
import type { Grants, Rights } from './grants.model.ts'

export type RightsInput = {
  /** The identity's own uid. One that lives in a sub-group never reaches above that group. */
  identity: string
  grants: Grants
  operator?: boolean
  /** The token's `cap` claim; what it does not name is not granted. Absent: the token does not narrow. */
  narrowing?: Grants | undefined
  /** Of a session that an organisation's provider vouches for: nothing outside of the organisation. Empty for none. */
  within?: string
}

/**
 * The one decision: the union of what is bound at a place and above it, cut to the identity's home, to the
 * organisation that a session reaches, and to what the token allows.
 */
export function createRights({ identity, grants, operator = false, narrowing, within = '' }: RightsInput): Rights {
  const home = parentOf(identity)
  const held: Grants = operator
    ? new Map([[top, everyCapability]])
    : new Map([...grants].filter(([place]) => isAtOrBelow(place, home) && isAtOrBelow(place, within || top)))

  const covers = (place: string, need: bigint): boolean =>
    (union(held, place) & need) === need && (narrowing === undefined || (union(narrowing, place) & need) === need)

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
      const masks = [...both].map((place) => [place, union(held, place) & union(narrowing, place)] as const)
      return new Map(masks.filter(([, mask]) => mask !== 0n))
    },
  }
}

/** The same rights, but none where the caller does not hold `numbers` as well. */
export function onlyWith(rights: Rights, numbers: readonly number[]): Rights {
  return {
    holds: (node, more) => rights.holds(node, [...more, ...numbers]),
    roots: (more) => rights.roots([...more, ...numbers]),
    places: () => {
      const all = rights.places()
      const kept = [...new Set([...all.keys(), ...rights.roots(numbers)])].filter((place) =>
        rights.holds(place, numbers),
      )
      return new Map(kept.map((place) => [place, union(all, place)]))
    },
  }
}

/** Both together: what is bound, and what a session's external groups add. */
export function withGranted(grants: Grants, granted: Grants | undefined): Grants {
  if (!granted || granted.size === 0) return grants
  const both = new Map(grants)
  for (const [place, mask] of granted) both.set(place, (both.get(place) ?? 0n) | mask)
  return both
}

/** A number that the contract does not know is held by nobody. */
function strictMask(numbers: Iterable<number>): bigint | undefined {
  let mask = 0n
  for (const number of numbers) {
    const known = capabilities.get(number)
    if (!known) return undefined
    mask |= known.mask
  }
  return mask
}

function union(grants: Grants, place: string): bigint {
  let mask = grants.get(top) ?? 0n
  if (place === top || grants.size === 0) return mask
  for (const node of lineage(place)) mask |= grants.get(node) ?? 0n
  return mask
}

/** Drops every place that lies below another one. */
function highest(places: string[]): string[] {
  const kept: string[] = []
  for (const place of places.sort()) {
    const last = kept.at(-1)
    if (last === undefined || !isAtOrBelow(place, last)) kept.push(place)
  }
  return kept
}

export const noRights: Rights = { holds: () => false, roots: () => [], places: () => new Map() }
