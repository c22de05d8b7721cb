import type { Fields } from '#lib/fields.ts'

export type RefusedAction = 'pull' | 'push' | 'delete'

/** A request that the registry has refused once or several times within an hour. */
export type Refusal = {
  /** Number of the row. */
  uid: string
  organization: string
  /** Uid of the deepest existing group on the path. */
  group: string
  /** True if the caller is not an identity of the organization and has no permission there. */
  outsider: boolean
  /** Empty if the repository does not exist and the caller is an outsider. */
  repository: string
  /** Uid of the caller. Empty for an anonymous caller. */
  caller: string
  action: RefusedAction
  /** Error code of the distribution specification. */
  code: string
  /** Tag or digest in the request. Empty if there is none. */
  reference: string
  reason: string
  remoteAddress: string
  count: number
  lastTime: string
}

/** Fields that lists can be sorted by. */
export const refusalFields = { lastTime: { column: 'last_time', sort: true } } as const satisfies Fields<Refusal>

/**
 * Limit on the rows of one organization. Applies separately to its own identities and callers with permissions, and to outsiders
 * (see `outsider`).
 */
export const maxKept = 500
/** Limit on the rows of all organizations. If it is exceeded, some rows of the organization with the most rows are deleted. */
export const maxKeptInAll = 100_000
