import type { ExpiringCache } from '#lib/caches/expiring-cache.ts'
import type { GrantCache } from './access/grants.model.ts'
import type { LastSeen } from './identities/last-seen.ts'
import type { CachedPushTokens } from './push-tokens/push-tokens.model.ts'
import type { Repeats } from './repeats/repeats.ts'
import type { CachedSessions } from './sessions/sessions.model.ts'
import type { TermsGate } from './terms/terms-gate.ts'

/** Caches and other objects of this domain that live as long as the process. */
export type IamParts = {
  /** Cache of the grants of identities. Entries are at most half a second old. */
  grants: GrantCache
  /** Cache of active sessions. Entries are at most half a second old. */
  sessions: CachedSessions
  /** Cache of valid push tokens. Entries are at most half a second old. */
  pushTokens: CachedPushTokens
  lastSeen: LastSeen
  /** Idempotency keys. Repeated requests are not processed again. */
  repeats: Repeats
  /** Identities for which a warning about a too long claim was logged within the last hour. */
  tooLongClaims: ExpiringCache<true>
  /** Check of accepted terms, before methods that the settings name. */
  terms: TermsGate
}
