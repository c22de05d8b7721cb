// Who calls: what a credential stands for now.
import type { App } from '#app.ts'
import type { Caller } from '#caller.ts'
import { createRights, noRights, onlyWith, withGranted } from '#domains/iam/access/rights.ts'
import { type AccessToken, operatorUid, type Verifier } from '#issuer/access-token.ts'
import { unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'

/** Whoever has shown no credential. */
export const nobody: Caller = { uid: '', operator: false, rights: noRights }

/** The caller that a bearer token stands for, with what they may do now. Throws UNAUTHENTICATED without a valid one. */
export async function authenticate(
  app: App,
  verify: Verifier,
  { authorization, source }: { authorization: string | undefined; source: string },
): Promise<Caller> {
  if (authorization === undefined) throw unauthenticated('a bearer token is required')
  return countRefusals(app.limits, source, async () => {
    const bearer = bearerOf(authorization)
    if (bearer === undefined) throw unauthenticated('the Authorization header must be "Bearer" and a token')
    const token = await verify(bearer)
    return callerOf(app, token.subject, token)
  })
}

/** The credential of an Authorization header of the Bearer scheme (RFC 6750). */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1]
}

/**
 * The identity `uid` with what it may do now, narrowed by the token that was shown; an empty one is nobody. Throws
 * UNAUTHENTICATED once the identity is gone, however long its tokens still live.
 */
export async function callerOf(app: App, uid: string, token?: AccessToken): Promise<Caller> {
  if (uid === '') return token ? { ...nobody, token } : nobody
  const operator = uid === operatorUid
  const grants = operator ? new Map<string, bigint>() : await app.grants.of(uid)
  if (!grants) throw unauthenticated('the identity of the token is gone')
  const session = token?.session
  const live = session && session.uid !== '' ? await app.sessions.of(session.uid) : undefined
  if (session && session.uid !== '' && !live) throw unauthenticated('the session of the token has ended')
  const push = await pushTokenOf(app, uid, token)
  const granted = token?.grantedBySession ? live?.granted : token?.granted
  const rights = createRights({
    identity: uid,
    // Roles of pushed groups are never part of a token, so that they end when the membership does.
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

/** What the push token behind a token of the registry allows now. Throws UNAUTHENTICATED once it is gone. */
async function pushTokenOf(app: App, uid: string, token: AccessToken | undefined): ReturnType<App['pushTokens']['of']> {
  if (token?.pushToken === undefined) return undefined
  const live = await app.pushTokens.of(token.pushToken)
  if (live?.identityUid !== uid) throw unauthenticated('the push token has been revoked, or has expired')
  return live
}

/** The caller at a door that needs `numbers` beside what is asked for: nothing counts where they are not held. */
export function onlyAsFarAs(caller: Caller, numbers: readonly number[]): Caller {
  return { ...caller, rights: onlyWith(caller.rights, numbers) }
}
