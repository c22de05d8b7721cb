/** Source of a repository that is copied, and targets that clients have configured. */
export type SyncConfig = {
  /** Uid of a repository of this server, which may have been deleted. */
  source: string
  /** In a request, undefined keeps the current time. An empty text sets the default time, counted from now. */
  expirationTime: string | undefined
  // Repositories in cloud registries. They are stored for clients; nothing is copied there.
  google: string
  amazon: string
  azure: string
  /** In a request, undefined keeps the current value. */
  syncApks: boolean | undefined
  // These two settings belong to the organization.
  uniqueTags: boolean
  gracePeriod: boolean
}

/** Values of members that a field mask does not name, for a repository without a configuration. */
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

/** Source configuration to store for a repository. If `setter` is set, the copy begins again on behalf of this caller. */
export type ResolvedSync = {
  config: SyncConfig
  /** True if the caller may pull from the source and push to the repository. */
  mayCopy: boolean
  setter: { uid: string; operator: boolean } | undefined
}
