/** Capability masks by group. A mask also applies to everything below its group. */
export type Grants = ReadonlyMap<string, bigint>

/** Permissions of a caller: the granted capabilities, limited by the token. */
export type Rights = {
  /** True if the caller holds all of `capabilities` (numbers in the contract) on `node`, by grants there or above. */
  holds(node: string, capabilities: Iterable<number>): boolean
  /**
   * Highest groups on which the caller holds all of `capabilities`. No group in the result is below another one. `/` is the whole
   * server.
   */
  roots(capabilities: Iterable<number>): string[]
  /** Capability masks of the caller, by group. A mask also applies to everything below its group. */
  grants(): Grants
}

/** Cache of the grants of identities. Entries are at most half a second old. */
export type GrantCache = {
  /** Grants of an identity. Undefined if the identity does not exist. */
  of(identity: string): Promise<Grants | undefined>
  /** Clears the cache. Reads in progress do not fill it again. */
  clear(): void
}
