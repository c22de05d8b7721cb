/** What holds for all repos of an organisation that copy from others. */
export type RegistrySettings = {
  /** Copies also get unique, dated tags. */
  uniqueTags: boolean
  /** Tags get a grace period after their end of life. */
  eolGracePeriod: boolean
}
