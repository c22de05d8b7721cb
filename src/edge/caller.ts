// Authentication: finds the caller of a credential, with the caller's current permissions.
import type { App } from '#app.ts'
import type { Caller } from '#caller.ts'
import { createRights, noRights, onlyWith, withGranted } from '#domains/iam/access/rights.ts'
import { type AccessToken, operatorUid, type Verifier } from '#issuer/access-token.ts'
import { unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'

/** Anonymous caller, without a credential. */
export const nobody: Caller = { uid: '', operator: false, rights: noRights }

/** Caller of a bearer token, with current permissions. Throws UNAUTHENTICATED without a valid token. */
export async function authenticate(
  app: App,
  verify: Verifier,
  { authorization, source }: { authorization: string | undefined; source: string },
): Promise<Caller> {
  if (authorization === undefined)
    throw unauthenticated('no credentials were sent; send a token in the header "Authorization: Bearer TOKEN"')
  return countRefusals(app.limits, source, async () => {
    const bearer = bearerOf(authorization)
    if (bearer === undefined) throw unauthenticated('the header must have the form "Authorization: Bearer TOKEN"')
    const token = await verify(bearer)
    return callerOf(app, token.subject, token)
  })
}

/** Token in an Authorization header with the Bearer scheme (RFC 6750). Undefined for another scheme. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1]
}

/**
 * Identity `uid` with its current permissions, narrowed by the token. For an empty uid, the anonymous caller. Throws
 * UNAUTHENTICATED if the identity was deleted, even if its tokens have not expired.
 */
export async function callerOf(app: App, uid: string, token?: AccessToken): Promise<Caller> {
  if (uid === '') return token ? { ...nobody, token } : nobody
  const operator = uid === operatorUid
  const grants = operator ? new Map<string, bigint>() : await app.grants.of(uid)
  if (!grants) throw unauthenticated('the identity of the token was deleted')
  const session = token?.session
  const live = session && session.uid !== '' ? await app.sessions.of(session.uid) : undefined
  if (session && session.uid !== '' && !live) throw unauthenticated('the session of the token has ended; sign in again')
  const push = await pushTokenOf(app, uid, token)
  const granted = token?.grantedBySession ? live?.granted : token?.granted
  const rights = createRights({
    identity: uid,
    // Roles of SCIM groups are read with the session, and are never part of a token. So they end together with the membership.
    grants: withGranted(withGranted(grants, granted), live?.pushed),
    operator,
    narrowing: push?.narrowing ?? token?.narrowing,
    within: session?.organization ?? '',
  })
  return {
    uid,
    operator,
    rights,
    ...(token && { token: { ...token, ...(granted && { granted }), ...(push && { act: push.act }) } }),
    ...(session && { session }),
  }
}

/**
 * Current data of the push token that a registry token was issued for. Throws UNAUTHENTICATED if the push token was revoked or
 * has expired.
 */
async function pushTokenOf(app: App, uid: string, token: AccessToken | undefined): ReturnType<App['pushTokens']['of']> {
  if (token?.pushToken === undefined) return undefined
  const live = await app.pushTokens.of(token.pushToken)
  if (live?.identityUid !== uid) throw unauthenticated('the push token was revoked or has expired; create a new one')
  return live
}

/**
 * Caller at an entry point that needs the capabilities `numbers` itself. Removes permissions on groups where the caller lacks
 * these capabilities.
 */
export function limitRights(caller: Caller, numbers: readonly number[]): Caller {
  return { ...caller, rights: onlyWith(caller.rights, numbers) }
}
