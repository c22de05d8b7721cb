/** Source of a repository that is copied, and targets that clients have configured. */
export type SyncConfig = {
  /** Uid of a repository of this server, which may have been deleted. */
  source: string
  /** In a request, undefined keeps the value, and an empty text means the default from now on. */
  expirationTime: string | undefined
  // Repositories in cloud registries. They are stored for clients; nothing is copied there.
  google: string
  amazon: string
  azure: string
  /** In a request, undefined keeps the value. */
  syncApks: boolean | undefined
  // Two settings of the organization.
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

/** Change of the source of a repository. */
export type SourceChange = { repo: string; before: SyncConfig | undefined; asked: SyncConfig }

/** Configuration to store for a repository. `setter` is set if the copy begins again, in the name of the caller. */
export type SettledSync = {
  config: SyncConfig
  /** True if the caller may pull from the source and push to the repository. */
  mayCopy: boolean
  setter: { uid: string; operator: boolean } | undefined
}
