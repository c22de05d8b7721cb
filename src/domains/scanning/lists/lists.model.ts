// The numbers are stored; they keep their meaning for good.
/** `building`: not all of its packages are there yet, so it counts for nothing. */
export const listStates = { building: 0, complete: 1 } as const

/** A list of packages in a distribution, as it is kept with an image. */
export type ListKey = { hash: string; distribution: { id: string; version: string } }

/** A package as images have it in common. The ecosystem is empty where there is none for its distribution. */
export type Component = {
  kind: string
  ecosystem: string
  name: string
  version: string
  origin: string
  originVersion: string
  arch: string
}

export type StoredComponent = Component & { componentNo: number }

/** A component as one list has it. */
export type ListEntry = { component: Component; locations: readonly string[]; owner: Component | undefined }

/** `matchTime`: when all its packages had been compared first; empty before. */
export type StoredList = { listNo: number; state: number; ecosystem: string; packages: number; matchTime: string }

export const keyOf = (one: Component): string =>
  JSON.stringify([one.name, one.version, one.ecosystem, one.kind, one.origin, one.originVersion, one.arch])
