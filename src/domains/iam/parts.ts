import type { Lapsing } from '#lib/caches/lapsing.ts'
import type { GrantCache } from './access/grants.model.ts'
import type { LastSeen } from './identities/last-seen.ts'
import type { CachedPushTokens } from './push-tokens/push-tokens.model.ts'
import type { Repeats } from './repeats/repeats.ts'
import type { CachedSessions } from './sessions/sessions.model.ts'
import type { TermsGate } from './terms/terms-gate.ts'

/** What this domain holds in memory, as long as the process runs. */
export type IamParts = {
  /** Who is bound to what, at most half a second old. */
  grants: GrantCache
  /** Which sessions of people have not been ended, at most half a second old. */
  sessions: CachedSessions
  /** Which push tokens are good, at most half a second old. */
  pushTokens: CachedPushTokens
  lastSeen: LastSeen
  /** Requests that callers have named, so that none is carried out twice. */
  repeats: Repeats
  /** Identities with a logged claim that was too long for their patterns. */
  tooLongClaims: Lapsing<true>
  /** Which methods wait until an organisation has accepted the terms. */
  terms: TermsGate
}
