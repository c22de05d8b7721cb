import type { PackageKind } from '#contents/packages.ts'

// The numbers are stored in the database and must not change.
/**
 * State of a package list. `building`: some packages are missing, so no report uses the list yet. `gone`: the list is being
 * deleted.
 */
export const listStates = { building: 0, complete: 1, gone: 2 } as const

/** Key of a package list: hash and distribution, as stored with an image. */
export type ListKey = { hash: string; distribution: { id: string; version: string } }

/** A package that several images can share. The ecosystem is empty if the package's distribution has none. */
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

/** A component that is compared with advisories. `held` is true if all lists with the component have too many findings. */
export type MatchedComponent = StoredComponent & { held: boolean }

/**
 * A package list. `matchTime` is the time at which all packages had first been compared, or empty. `isOver` is true if more
 * findings exist than are stored for one list, so some findings are missing.
 */
export type StoredList = {
  listNo: number
  state: number
  ecosystem: string
  /** Ecosystems of the packages, in order. Undefined for lists of earlier releases until the next cleanup. */
  ecosystems: string[] | undefined
  packages: number
  matchTime: string
  isOver: boolean
}

/** Time range in which a list was over the limit of findings. `untilTime` is empty while the list is over the limit. */
export type OverLimit = { fromTime: string; untilTime: string }

export const keyOf = (one: Component): string =>
  JSON.stringify([one.name, one.version, one.ecosystem, one.kind, one.origin, one.originVersion, one.arch])
