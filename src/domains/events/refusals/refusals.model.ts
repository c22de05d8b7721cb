import type { Fields } from '#lib/fields.ts'

export type RefusedAction = 'pull' | 'push' | 'delete'

/** A request that the registry has refused, once or several times within an hour. */
export type Refusal = {
  /** Number of the row. */
  uid: string
  organization: string
  /** Uid of the deepest existing group on the path. */
  place: string
  /** True if the caller is not an identity of the organization and has no permission there. */
  outsider: boolean
  /** Empty if the repository does not exist and the caller is an outsider. */
  repository: string
  /** Uid of the caller. Empty for anonymous callers. */
  caller: string
  action: RefusedAction
  /** Error code of the distribution specification. */
  code: string
  /** Tag or digest. Empty for none. */
  reference: string
  reason: string
  remoteAddress: string
  count: number
  lastTime: string
}

/** Fields that lists can be sorted by. */
export const refusalFields = { lastTime: { column: 'last_time', sort: true } } as const satisfies Fields<Refusal>

/** Most rows of one organization for its own identities and callers with permissions, and the same number for others. */
export const maxKept = 500
/** Most rows of all organizations together. Above it, the organization with the most rows loses some. */
export const maxKeptInAll = 100_000
