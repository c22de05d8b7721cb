// Whether the session of an access token has been ended, and what pushed groups add to it, read at most twice a second as the
// bindings are.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { createBriefCache } from '#lib/caches/brief-cache.ts'
import { rootOf } from '#lib/uid.ts'
import { maskOf } from '../access/capabilities.ts'
import type { Grants } from '../access/grants.model.ts'
import { pushedRoles } from '../scim/scim-groups.store.ts'
import { type CachedSessions, isStillTrusted, type LiveSession, type Session } from './sessions.model.ts'
import { findSession } from './sessions.store.ts'

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createLiveSessions(
  reader: Reader,
  config: Pick<App['config'], 'peopleIssuers'>,
  monotonic: () => number,
): CachedSessions {
  const sessions = createBriefCache((uid) => read(reader, uid), monotonic)
  return {
    async of(uid) {
      const session = await sessions.of(uid)
      return session && isStillTrusted(session, config.peopleIssuers) ? session : undefined
    },
    clear: sessions.clear,
  }
}

/** No more of it than is needed, since many are kept. */
async function read(reader: Reader, uid: string): Promise<LiveSession | undefined> {
  const session = await findSession(reader, uid)
  if (!session) return undefined
  const { provider, organization, act, granted } = session
  return { provider, organization, act, granted, pushed: await pushedGrants(reader, session) }
}

/** Capability masks that groups pushed over SCIM give to the person, within the organization of the provider. */
async function pushedGrants(reader: Reader, { provider, organization, externalId }: Session): Promise<Grants> {
  const grants = new Map<string, bigint>()
  if (organization === '' || externalId === '') return grants
  for (const { scope, capabilities } of await pushedRoles(reader, provider, externalId)) {
    if (rootOf(scope) !== organization) continue
    grants.set(scope, (grants.get(scope) ?? 0n) | maskOf(JSON.parse(capabilities) as number[]))
  }
  return grants
}
