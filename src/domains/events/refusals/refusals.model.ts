import type { Fields } from '#lib/fields.ts'

export type RefusedAction = 'pull' | 'push' | 'delete'

/** Something that the registry has refused, once or several times within an hour. */
export type Refusal = {
  /** The number of the row. */
  uid: string
  organisation: string
  /** The uid of the deepest group on the path that exists. */
  place: string
  /** The caller is no identity of the organisation, and may do nothing there. */
  outsider: boolean
  /** Empty where there is none, and the caller is an outsider. */
  repository: string
  /** A uid; empty for nobody. */
  caller: string
  action: RefusedAction
  /** Of the distribution specification. */
  code: string
  /** A tag or a digest; empty for none. */
  reference: string
  reason: string
  remoteAddress: string
  count: number
  lastTime: string
}

/** What a list can be ordered by. */
export const refusalFields = { lastTime: { column: 'last_time', sort: true } } as const satisfies Fields<Refusal>

/** Of one organisation, by its own identities and whoever may do something there, and as many by others. */
export const maxKept = 500
/** Of all organisations together, from when on the one that has most loses some. */
export const maxKeptInAll = 100_000
