// Whether a push token is still good, read at most twice a second as the bindings are.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { pushTokenIssuer } from '#lib/cause.ts'
import { capabilityNumber, maskOf } from '../access/capabilities.ts'
import type { Grants } from '../access/grants.model.ts'
import { isStillTrusted } from '../sessions/sessions.model.ts'
import type { CachedPushTokens, PushToken } from './push-tokens.model.ts'
import { findPushToken } from './push-tokens.store.ts'

const maxAgeMs = 500
const maxEntries = 10_000

const pulls = ['repo.list', 'manifest.list', 'tag.list', 'repo.blobs.get', 'referrers.list']
const pushes = ['manifest.create', 'manifest.update', 'tag.create', 'tag.update', 'groups.create', 'repo.create']
const masks = {
  pull: maskOf(pulls.map(capabilityNumber)),
  push: maskOf([...pulls, ...pushes].map(capabilityNumber)),
}

/** What a push token allows where its maker holds it: to pull, or also to push; never to delete. */
export function narrowingOf({ group, repos, push }: Pick<PushToken, 'group' | 'repos' | 'push'>): Grants {
  const mask = push ? masks.push : masks.pull
  return new Map((repos.length === 0 ? [group] : repos).map((place) => [place, mask]))
}

/** Whether it is good now, with nothing said of what its maker may do. */
export function isGood(token: PushToken, { config, clock }: Pick<App, 'config' | 'clock'>): boolean {
  const { provider, organization, issuer, expireTime } = token
  if (expireTime <= clock().toISOString()) return false
  return isStillTrusted({ provider, organization, act: { iss: issuer } }, config.peopleIssuers)
}

/** By what the maker acts. A name may be anything, so that it stands beside what is sure. */
export function actOf({ uid, userName, name }: PushToken): Readonly<Record<string, string>> {
  return { iss: pushTokenIssuer, sub: uid, aud: userName, name }
}

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createLivePushTokens(
  reader: Reader,
  app: Pick<App, 'config' | 'clock'>,
  monotonic: () => number,
): CachedPushTokens {
  const entries = new Map<string, { found: Promise<PushToken | undefined>; loadedAt: number }>()
  const load = (uid: string): Promise<PushToken | undefined> => {
    const now = monotonic()
    const cached = entries.get(uid)
    if (cached && now - cached.loadedAt < maxAgeMs) return cached.found
    const entry = { found: findPushToken(reader, uid), loadedAt: now }
    entries.delete(uid)
    entries.set(uid, entry)
    if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
    entry.found.catch(() => {
      if (entries.get(uid) === entry) entries.delete(uid)
    })
    return entry.found
  }
  return {
    async of(uid) {
      const token = await load(uid)
      if (!token || !isGood(token, app)) return undefined
      return { identityUid: token.identityUid, narrowing: narrowingOf(token), act: actOf(token) }
    },
    clear: () => entries.clear(),
  }
}
