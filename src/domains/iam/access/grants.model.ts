/** Capability masks by the place at which they are held; they hold below it as well. */
export type Grants = ReadonlyMap<string, bigint>

/** What a caller may do where: live bindings, narrowed by the token. */
export type Rights = {
  /** Whether the caller holds all of `capabilities` (numbers of the contract) at `node` or above it. */
  holds(node: string, capabilities: Iterable<number>): boolean
  /** The highest places at which the caller holds all of `capabilities`, none below another. `/` stands for everything. */
  roots(capabilities: Iterable<number>): string[]
  /** Capability masks by the places at which the caller holds something; below them the same holds. */
  places(): Grants
}

/** What each identity is bound to, and that it is still there, read at most twice a second. */
export type GrantCache = {
  /** `undefined` when there is no such identity. */
  of(identity: string): Promise<Grants | undefined>
  /** Forgets everything, also what is being read. */
  clear(): void
}
