import type { Fields } from '#lib/fields.ts'
import type { NamedKind } from './hooks.ts'

/** An audited change, with its actor, time and source. An entry belongs to the group of its event and never changes. */
export type AuditEntry = {
  uid: string
  type: string
  subject: string
  /** Uid of the identity. Empty if nobody was signed in. */
  actor: string
  /** JSON of the claims of the sign-in of the identity. Empty if there are none. */
  act: string
  remoteAddress: string
  userAgent: string
  requestId: string
  bodyType: string
  /** JSON of the body of the event. */
  body: string
  /** JSON of the resource before its deletion. Empty if nothing was deleted, or if the resource has no earlier entry. */
  former: string
  /** JSON of the names of resources at the time of the entry (`EntryNames`). Empty for entries of earlier versions. */
  names: string
  createTime: string
}

/** Kind and name of resources, by uid. */
export type EntryNames = Record<string, [kind: NamedKind, name: string]>

/** Names of an entry. Empty for entries of earlier versions. */
export function parseNames(names: string): EntryNames {
  return names === '' ? {} : (JSON.parse(names) as EntryNames)
}

export const auditEntryType = 'events.pinfold.dev/AuditEntry'

/** Sort fields of lists of entries. */
export const auditFields = { createTime: { column: 'create_time', sort: true } } as const satisfies Fields<AuditEntry>

/** Filter of a list. An empty field matches everything. Times are ISO text, and `until` is exclusive. */
export type AuditFilter = { actor: string; subject: string; type: string; since: string; until: string }

/**
 * Names of the audited events: permissions, subscriptions, deleted tag histories, restored tags, cooldown and retention policies, quotas,
 * accepted risks, admission policies, trusted signers, mirrors and upstreams.
 */
const audited =
  /^(?:iam|auth|events|control\.iam|control\.registry\.(?:ledger|tag|pull_rule|follow|retention|upstream(?!\.moved))|control\.quotas|control\.scanning\.(?:risk|gate|signer))\./

/** True if the event with this short name is audited. */
export function isAudited(name: string): boolean {
  return audited.test(name)
}

/** Most matching entries of a filter that are counted. */
export const maxCounted = 10_000

export const maxUserAgent = 256
