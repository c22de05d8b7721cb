import type { Ground } from '#app.ts'
import { createExpiringCache } from '#lib/caches/expiring-cache.ts'
import { createLastSeen } from './identities/last-seen.ts'
import type { IamParts } from './parts.ts'
import { createLivePushTokens } from './push-tokens/live-push-tokens.ts'
import { createRepeats } from './repeats/repeats.ts'
import { createGrantCache } from './roles/grants.ts'
import { createLiveSessions } from './sign-in/live-sessions.ts'
import { createTermsGate } from './terms/terms-gate.ts'

/** Most identities for which the server remembers that it has logged a warning about a too long claim. */
const mostTooLong = 1000

export function openIam(ground: Ground, opening: AsyncDisposableStack): IamParts {
  const { config, db, clock, monotonic, failures, cipher, eventTable } = ground
  const onError = (error: unknown) => failures.repeated('last use of identities could not be written', error)
  return {
    grants: createGrantCache(db, monotonic),
    sessions: createLiveSessions(db, config, monotonic),
    pushTokens: createLivePushTokens(db, { config, clock }, monotonic),
    lastSeen: opening.adopt(createLastSeen(db, onError), (open) => open.close()),
    repeats: createRepeats(db, cipher, clock),
    tooLongClaims: createExpiringCache(mostTooLong),
    terms: createTermsGate(db, config.termsDocuments, config.termsMethods.flatMap(eventTable.inEveryVersion)),
  }
}
