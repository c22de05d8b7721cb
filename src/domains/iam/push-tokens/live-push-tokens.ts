// Cache of valid push tokens. Each token is read from the database at most twice a second.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { createShortLivedCache } from '#lib/caches/short-lived-cache.ts'
import { pushTokenIssuer } from '#lib/cause.ts'
import { capabilityNumber, maskOf } from '../access/capabilities.ts'
import type { Grants } from '../access/grants.model.ts'
import { isStillTrusted } from '../sessions/sessions.model.ts'
import type { CachedPushTokens, PushToken } from './push-tokens.model.ts'
import { findPushToken } from './push-tokens.store.ts'

const pulls = ['repo.list', 'manifest.list', 'tag.list', 'repo.blobs.get', 'referrers.list']
const pushes = ['manifest.create', 'manifest.update', 'tag.create', 'tag.update', 'groups.create', 'repo.create']
const masks = {
  pull: maskOf(pulls.map(capabilityNumber)),
  push: maskOf([...pulls, ...pushes].map(capabilityNumber)),
}

/**
 * Capabilities to which a push token narrows the permissions of its creator: those for pulls, or those for pulls and pushes.
 * Deletion is never included.
 */
export function narrowingOf({ group, repos, push }: Pick<PushToken, 'group' | 'repos' | 'push'>): Grants {
  const mask = push ? masks.push : masks.pull
  return new Map((repos.length === 0 ? [group] : repos).map((scope) => [scope, mask]))
}

/**
 * True if the token has not expired and the sign-in provider of its creator is still trusted. Permissions of the creator are not
 * checked here.
 */
export function isGood(token: PushToken, { config, clock }: Pick<App, 'config' | 'clock'>): boolean {
  const { provider, organization, issuer, expireTime } = token
  if (expireTime <= clock().toISOString()) return false
  // The creator authenticated with a token of a provider, without a session. The settings must still trust this provider.
  if (provider === '' && issuer !== '') return config.oidcProviders.some((trusted) => trusted.issuer === issuer)
  return isStillTrusted({ provider, organization, act: { iss: issuer } }, config.oidcProviders)
}

/** `act` of requests with the token, for events. All members but `name`, which the creator chooses, are verified. */
export function actOf({ uid, userName, name }: PushToken): Readonly<Record<string, string>> {
  return { iss: pushTokenIssuer, sub: uid, aud: userName, name }
}

/** Creates the cache. `monotonic` returns milliseconds of a clock that is never adjusted. */
export function createLivePushTokens(
  reader: Reader,
  app: Pick<App, 'config' | 'clock'>,
  monotonic: () => number,
): CachedPushTokens {
  const tokens = createShortLivedCache((uid) => findPushToken(reader, uid), monotonic)
  return {
    async of(uid) {
      const token = await tokens.of(uid)
      if (!token || !isGood(token, app)) return undefined
      return { identityUid: token.identityUid, narrowing: narrowingOf(token), act: actOf(token) }
    },
    clear: tokens.clear,
  }
}
