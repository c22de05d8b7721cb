// Cache of active sessions, with the grants from provisioned groups. Each session is read from the database at most twice a
// second.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { createShortLivedCache } from '#lib/caches/short-lived-cache.ts'
import { rootOf } from '#lib/uid.ts'
import type { Grants } from '../access/grants.model.ts'
import { grantsOf } from '../roles/grants.ts'
import { pushedRoles } from '../scim/scim-groups.store.ts'
import { type CachedSessions, isStillTrusted, type LiveSession, type Session } from '../sessions/sessions.model.ts'
import { findSession } from '../sessions/sessions.store.ts'

/** Creates the cache. `monotonic` returns milliseconds of a clock that is never adjusted. */
export function createLiveSessions(
  reader: Reader,
  config: Pick<App['config'], 'oidcProviders'>,
  monotonic: () => number,
): CachedSessions {
  const sessions = createShortLivedCache((uid) => read(reader, uid), monotonic)
  return {
    async of(uid) {
      const session = await sessions.of(uid)
      return session && isStillTrusted(session, config.oidcProviders) ? session : undefined
    },
    clear: sessions.clear,
  }
}

/** Only the members that requests need are cached, to save memory. */
async function read(reader: Reader, uid: string): Promise<LiveSession | undefined> {
  const session = await findSession(reader, uid)
  if (!session) return undefined
  const { provider, organization, act, granted } = session
  return { provider, organization, act, granted, pushed: await pushedGrants(reader, session) }
}

/**
 * Grants from the groups that the organization's provider has provisioned for the person over SCIM. Grants outside of the
 * organization are left out.
 */
async function pushedGrants(reader: Reader, { provider, organization, externalId }: Session): Promise<Grants> {
  if (organization === '' || externalId === '') return new Map()
  const roles = await pushedRoles(reader, provider, externalId)
  return grantsOf(roles.filter(({ scope }) => rootOf(scope) === organization))
}
