// Types of rules and records at a scope: a group with everything below it, or a repository.

/** A row with its scope. */
export type Scoped = { uid: string; scopeUid: string; createTime: string }

/** A rule, which can be changed and deleted. */
export type Rule = Scoped & { updateTime: string }

/** A record that holds until it ends, and does not change otherwise: exemptions, holds, quarantines, accepted risks, signers. */
export type Ending = Scoped & {
  reason: string
  actor: string
  /** Missing if only a member can end it. */
  expireTime?: string
  /** Empty while the record holds. `endActor` is empty if it expired. */
  endTime: string
  endActor: string
  endReason?: string
}

/** Filter for records that hold at `now`, or for all records if it is undefined. */
export type Holding = { now: string | undefined }

/** An exemption of a digest from the rules of a scope, until a time or until a member ends it. */
export type DigestException = Ending & { digest: string; expireTime: string }
export type NewException = Pick<DigestException, 'digest' | 'reason' | 'expireTime'>

/** The rules of an organization that are in force, and the exemptions from them. */
export type RulesInForce<T> = { rules: readonly T[]; exceptions: readonly DigestException[] }

/** The rules of organizations, at most 0.5 s stale. */
export type RuleCache<T> = {
  /** Returns undefined if the organization has no rule. */
  of(organization: string): Promise<RulesInForce<T> | undefined>
  /** True if it is known that no organization has a rule, so that callers need not wait for `of`. */
  isEmpty(): boolean
  clear(): void
}

/** Longest reason, in UTF-16 units. */
export const maxReason = 2000
