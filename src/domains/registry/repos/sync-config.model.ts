/** Source of a repository that is copied, and targets that clients have configured. */
export type SyncConfig = {
  /** The uid of a repo of this server; it may be gone. */
  source: string
  /** In a request: undefined to leave it unchanged, empty for the default from now on. */
  expirationTime: string | undefined
  // Repositories in registries of clouds. They are kept for clients, and nothing is copied there.
  google: string
  amazon: string
  azure: string
  /** In a request: undefined to leave it unchanged. */
  syncApks: boolean | undefined
  // These two are settings of the organisation.
  uniqueTags: boolean
  gracePeriod: boolean
}

/** Defaults of the members that a mask does not name, for a repository without a configuration. */
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

/** Members that are stored with the repository. */
export type StoredSync = Omit<SyncConfig, 'uniqueTags' | 'gracePeriod'>

/** A change of what a repository is copied from. */
export type SourceChange = { repo: string; before: SyncConfig | undefined; asked: SyncConfig }

/** Configuration to store for a repository. `setter` is set if the copy begins again, in the name of the caller. */
export type SettledSync = {
  config: SyncConfig
  /** Whether the caller may pull the source and push to the repo. */
  mayCopy: boolean
  setter: { uid: string; operator: boolean } | undefined
}
