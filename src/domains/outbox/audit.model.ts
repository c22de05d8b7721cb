import type { Fields } from '#lib/fields.ts'

/** A change related to access, with its actor, time and source. An entry belongs to the group of its event, and never changes. */
export type AuditEntry = {
  uid: string
  type: string
  subject: string
  /** Uid of the identity. Empty if nobody was signed in. */
  actor: string
  /** JSON of the claims with which the identity had signed in. Empty for none. */
  act: string
  remoteAddress: string
  userAgent: string
  requestId: string
  bodyType: string
  /** JSON of the body, as in the event. */
  body: string
  createTime: string
}

export const auditEntryType = 'events.pinfold.dev/AuditEntry'

/** Fields that lists can be sorted by. */
export const auditFields = { createTime: { column: 'create_time', sort: true } } as const satisfies Fields<AuditEntry>

/** Empty fields match everything. Times are ISO text, and `until` is not included. */
export type AuditFilter = { actor: string; subject: string; type: string; since: string; until: string }

/**
 * Audited events: permissions, subscriptions, deleted tag histories, cooldown and retention policies, quotas, accepted risks,
 * admission policies, trusted signers, mirrors and upstreams.
 */
const audited =
  /^(?:iam|auth|events|control\.iam|control\.registry\.(?:ledger|pull_rule|follow|retention|upstream(?!\.moved))|control\.quotas|control\.scanning\.(?:risk|gate|signer))\./

/** True if the event with this short name is audited. */
export function isAudited(name: string): boolean {
  return audited.test(name)
}

/** Most matches of a filter that are counted. */
export const maxCounted = 10_000

export const maxUserAgent = 256
