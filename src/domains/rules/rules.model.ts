// Types of rules and records at a scope: a group with everything below it, or a repository.

/** Record that applies in a scope. */
export type Scoped = { uid: string; scopeUid: string; createTime: string }

/** A rule. It can be changed and deleted. */
export type Rule = Scoped & { updateTime: string }

/**
 * A record that applies until it ends and does not change before that. Examples are exemptions, holds, quarantines, accepted
 * risks and signers.
 */
export type Ending = Scoped & {
  reason: string
  actor: string
  /** Time of expiry. Missing if only a member can end the record. */
  expireTime?: string
  /** Empty until the record ends. `endActor` stays empty if the record expired. */
  endTime: string
  endActor: string
  endReason?: string
}

/** Filter for records that have not ended at `now`. If `now` is undefined, all records match. */
export type Holding = { now: string | undefined }

/** An exemption of a digest from the policies of a scope, until a time or until a member ends the exemption. */
export type DigestException = Ending & { digest: string; expireTime: string }
export type NewException = Pick<DigestException, 'digest' | 'reason' | 'expireTime'>

/** The active rules of an organization, and the exemptions from them. */
export type RulesInForce<T> = { rules: readonly T[]; exceptions: readonly DigestException[] }

/** The rules of organizations, at most 0.5 s stale. */
export type RuleCache<T> = {
  /** Returns undefined if the organization has no rule. */
  of(organization: string): Promise<RulesInForce<T> | undefined>
  /** True if it is known that no organization has a rule. Callers then need not wait for `of`. */
  isEmpty(): boolean
  clear(): void
}

/** Longest reason, in UTF-16 code units. */
export const maxReason = 2000
