import type { Fields } from '#lib/fields.ts'

/** Who changed what about access, when and from where. An entry lives in the group of its event, and never changes. */
export type AuditEntry = {
  uid: string
  type: string
  subject: string
  /** The uid of the identity; empty when nobody was signed in. */
  actor: string
  /** JSON: the claims that the identity had signed in by; empty for none. */
  act: string
  remoteAddress: string
  userAgent: string
  requestId: string
  bodyType: string
  /** JSON in the spelling of the event. */
  body: string
  createTime: string
}

export const auditEntryType = 'events.pinfold.dev/AuditEntry'

/** What a list can be ordered by. */
export const auditFields = { createTime: { column: 'create_time', sort: true } } as const satisfies Fields<AuditEntry>

/** Empty means that anything fits; times are ISO text, `until` not included. */
export type AuditFilter = { actor: string; subject: string; type: string; since: string; until: string }

/**
 * Events of what decides who may do what, and who is told of it, are audited, and so are the erasing of a ledger, rules
 * of pulls, new quotas, risks that are accepted, signers that are trusted, what repos follow elsewhere, and what is kept.
 */
const audited =
  /^(?:iam|auth|events|control\.iam|control\.registry\.(?:ledger|pull_rule|follow|retention|upstream(?!\.moved))|control\.quotas|control\.scanning\.(?:risk|gate|signer))\./

/** By the short name of the event. */
export function isAudited(name: string): boolean {
  return audited.test(name)
}

/** How far the matches of a filter are counted. */
export const maxCounted = 10_000

export const maxUserAgent = 256
