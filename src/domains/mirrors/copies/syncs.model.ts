import type { SyncState } from '../follows/sync-states.model.ts'

/** Position of a copy: the last tag, the last referrer, and the time of the last start from the beginning. */
export type SyncCursor = {
  tags: { value: string; uid: string } | undefined
  referrers: { time: string; digest: string }
  fullTime: string
  /** Tags that rules of the target refuse. They are tried again in each round. Tags beyond `mostRefused` are tried once a day. */
  refused?: readonly string[]
}

export const mostRefused = 100

/** Configuration and state of the copy of one repository. */
export type Sync = {
  repo: string
  source: string
  /** Uid of the identity in whose name the repository is copied. `operator` is true if this is the operator. */
  setter: string
  operator: boolean
  expirationTime: string
  state: SyncState
  cursor: SyncCursor
}

/** Default duration of a copy. */
export const usualTermMs = 14 * 24 * 3_600_000

/** Most repositories in a chain in which each one is copied from another. */
export const maxChain = 10

/** Longest name of a repository in a cloud registry. */
export const maxDestination = 512
export const destinations = ['google', 'amazon', 'azure'] as const
