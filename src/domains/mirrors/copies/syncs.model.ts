import type { SyncState } from '../follows/sync-states.model.ts'

/** Position of a copy: the last tag and the last referrer that it has seen, and the time at which it last began anew. */
export type SyncCursor = {
  tags: { value: string; uid: string } | undefined
  referrers: { time: string; digest: string }
  fullTime: string
  /** Tags that rules here keep from being copied, to be tried again; those beyond `mostRefused` are met once a day. */
  refused?: readonly string[]
}

export const mostRefused = 100

/** The copying of one repo. */
export type Sync = {
  repo: string
  source: string
  /** Uid of the identity in whose name the repository is copied; `operator` if that is the operator. */
  setter: string
  operator: boolean
  expirationTime: string
  state: SyncState
  cursor: SyncCursor
}

/** Default time for which a repository is copied. */
export const usualTermMs = 14 * 24 * 3_600_000

/** Limit of repositories in a row that are copied from one another. */
export const maxChain = 10

/** The longest name of a repository in the registry of a cloud. */
export const maxDestination = 512
export const destinations = ['google', 'amazon', 'azure'] as const
