import type { PackageKind } from '#contents/packages.ts'

// The numbers are stored; they keep their meaning for good.
/** `building`: not all of its packages are there yet, so it counts for nothing. `gone`: it is being deleted. */
export const listStates = { building: 0, complete: 1, gone: 2 } as const

/** A list of packages in a distribution, as it is kept with an image. */
export type ListKey = { hash: string; distribution: { id: string; version: string } }

/** A package as images have it in common. The ecosystem is empty where there is none for its distribution. */
export type Component = {
  kind: PackageKind
  ecosystem: string
  name: string
  version: string
  origin: string
  originVersion: string
  arch: string
}

export type StoredComponent = Component & { componentNo: number }

/** A component to be compared; `held`: only lists in which too much is found have it. */
export type MatchedComponent = StoredComponent & { held: boolean }

/**
 * `matchTime`: when all its packages had been compared first; empty before. `isOver`: more is found in them than is kept of
 * one list, so what is known of it is not all.
 */
export type StoredList = {
  listNo: number
  state: number
  ecosystem: string
  /** Those that its packages are of, in order; undefined for lists of before, until the next sweep. */
  ecosystems: string[] | undefined
  packages: number
  matchTime: string
  isOver: boolean
}

/** When a list was over the limit of what is kept; `untilTime` is empty while it is. */
export type OverLimit = { fromTime: string; untilTime: string }

export const keyOf = (one: Component): string =>
  JSON.stringify([one.name, one.version, one.ecosystem, one.kind, one.origin, one.originVersion, one.arch])
