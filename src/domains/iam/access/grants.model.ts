/** Capability masks by the group on which they are granted. They apply to everything below it as well. */
export type Grants = ReadonlyMap<string, bigint>

/** Permissions of a caller: granted capabilities, narrowed by the token. */
export type Rights = {
  /** True if the caller holds all of `capabilities` (numbers of the contract) at `node` or above it. */
  holds(node: string, capabilities: Iterable<number>): boolean
  /** Highest groups on which the caller holds all of `capabilities`; none is below another. `/` stands for everything. */
  roots(capabilities: Iterable<number>): string[]
  /** Capability masks by the groups on which the caller holds them. They apply below these groups as well. */
  places(): Grants
}

/** Cache of the grants of identities, at most half a second old. */
export type GrantCache = {
  /** Grants of an identity. Undefined if the identity does not exist. */
  of(identity: string): Promise<Grants | undefined>
  /** Clears the cache. Results of reads that are in progress are not cached either. */
  clear(): void
}
