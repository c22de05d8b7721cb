import type { PackageKind } from '#contents/packages.ts'

// The numbers are stored and must not change.
/** `building`: some of its packages are missing, so it does not count yet. `gone`: it is being deleted. */
export const listStates = { building: 0, complete: 1, gone: 2 } as const

/** A package list in a distribution, as it is stored with an image. */
export type ListKey = { hash: string; distribution: { id: string; version: string } }

/** A package that images share. The ecosystem is empty if its distribution has none. */
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

/** A component to be compared. `held` is true if all lists that contain it have too many findings. */
export type MatchedComponent = StoredComponent & { held: boolean }

/**
 * `matchTime` is the time at which all of its packages had first been compared, or empty. `isOver` is true if its packages have
 * more findings than are stored for one list, so that its findings are incomplete.
 */
export type StoredList = {
  listNo: number
  state: number
  ecosystem: string
  /** Ecosystems of its packages, in order. Undefined for lists of earlier releases until the next cleanup. */
  ecosystems: string[] | undefined
  packages: number
  matchTime: string
  isOver: boolean
}

/** Time range in which a list was over the limit of findings. `untilTime` is empty while it is. */
export type OverLimit = { fromTime: string; untilTime: string }

export const keyOf = (one: Component): string =>
  JSON.stringify([one.name, one.version, one.ecosystem, one.kind, one.origin, one.originVersion, one.arch])
