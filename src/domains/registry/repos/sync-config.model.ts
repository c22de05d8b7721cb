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

/** A change of what a repository is copied from. */
export type SourceChange = { repo: string; before: SyncConfig | undefined; asked: SyncConfig }

/** What is to be stored for a repo. `setter` is there when the copying begins again, in the name of the caller. */
export type SettledSync = {
  config: SyncConfig
  /** Whether the caller may pull the source and push to the repo. */
  mayCopy: boolean
  setter: { uid: string; operator: boolean } | undefined
}
