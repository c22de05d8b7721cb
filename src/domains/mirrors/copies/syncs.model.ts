import type { SyncState } from '../follows/sync-states.model.ts'

/** How far the copying has got: the last tag and the last referrer that it has seen, and when it last began at the start. */
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
  /** In whose name, and whether that is the operator. */
  setter: string
  operator: boolean
  expirationTime: string
  state: SyncState
  cursor: SyncCursor
}

/** How long a repo is copied when nobody says otherwise. */
export const usualTermMs = 14 * 24 * 3_600_000

/** How many repos may be copied from one another in a row. */
export const maxChain = 10

/** The longest name of a repository in the registry of a cloud. */
export const maxDestination = 512
export const destinations = ['google', 'amazon', 'azure'] as const
