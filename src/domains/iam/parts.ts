import type { Lapsing } from '#lib/caches/lapsing.ts'
import type { GrantCache } from './access/grants.model.ts'
import type { LastSeen } from './identities/last-seen.ts'
import type { CachedPushTokens } from './push-tokens/push-tokens.model.ts'
import type { Repeats } from './repeats/repeats.ts'
import type { CachedSessions } from './sessions/sessions.model.ts'
import type { TermsGate } from './terms/terms-gate.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type IamParts = {
  /** Role bindings of identities, at most half a second old. */
  grants: GrantCache
  /** Active sessions of people, at most half a second old. */
  sessions: CachedSessions
  /** Valid push tokens, at most half a second old. */
  pushTokens: CachedPushTokens
  lastSeen: LastSeen
  /** Request IDs that callers have sent, so that no request is carried out twice. */
  repeats: Repeats
  /** Identities with a logged claim that was too long for their patterns. */
  tooLongClaims: Lapsing<true>
  /** Methods that wait until an organization has accepted the terms. */
  terms: TermsGate
}
