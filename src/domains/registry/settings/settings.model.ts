/** Settings for all repositories of an organization that are copied from others. */
export type RegistrySettings = {
  /** Copies also get unique tags with a date. */
  uniqueTags: boolean
  /** Tags have a grace period after their end of life. */
  eolGracePeriod: boolean
}
