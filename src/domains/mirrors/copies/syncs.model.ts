import type { SyncState } from '../follows/sync-states.model.ts'

/** Where a repo is copied from, and where it is meant to go as well. */
export type SyncConfig = {
  /** The uid of a repo of this server; it may be gone. */
  source: string
  /** Of one that is asked for: undefined for as it was, empty for as long as usual from now on. */
  expirationTime: string | undefined
  // Repositories in registries of clouds. They are kept for clients, and nothing is copied there.
  google: string
  amazon: string
  azure: string
  /** Of one that is asked for: undefined for as it was. */
  syncApks: boolean | undefined
  // These two are settings of the organisation.
  uniqueTags: boolean
  gracePeriod: boolean
}

/** What a member is when a mask names another one and there is no configuration yet. */
export const emptySync: SyncConfig = {
  source: '',
  expirationTime: '',
  google: '',
  amazon: '',
  azure: '',
  syncApks: undefined,
  uniqueTags: false,
  gracePeriod: false,
}

/** What is kept with the repo. */
export type StoredSync = Omit<SyncConfig, 'uniqueTags' | 'gracePeriod'>

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
