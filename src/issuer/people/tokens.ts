// Access tokens and refresh tokens for the sessions of people.
import type { Work } from '#app.ts'
import { capabilitiesNamed } from '#domains/iam/access/capabilities.ts'
import { withGranted } from '#domains/iam/access/rights.ts'
import { issueRefreshToken, type RefreshToken, useRefreshToken } from '#domains/iam/sessions/refresh-tokens.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { maxLifetime } from '../access-token.ts'
import { checkInput, type ExchangeInput, type Issuing } from '../exchange.ts'
import { signNarrowed } from '../narrowed-token.ts'
import { ScopeOutOfReach } from '../narrowing.ts'
import { personClaims } from './profile.ts'

/** Audiences, scopes and capabilities that a token request contains. */
export type RequestedToken = Pick<ExchangeInput, 'audiences' | 'scopes' | 'capabilities'>

export type IssuedToken = { token: string; expiry: string }

/** Throws INVALID_ARGUMENT if the token request has an invalid value. */
export function checkRequest(issuer: string, wish: RequestedToken, identity = ''): void {
  checkInput(issuer, { ...wish, identity })
  capabilitiesNamed(wish.capabilities)
}

/**
 * Signs an access token for a session. The token is valid for at most an hour, and not longer than the session. The limits of the
 * session narrow the token.
 */
export async function accessTokenOf(
  { app, issuer }: Issuing,
  session: Session,
  wish: RequestedToken,
): Promise<IssuedToken> {
  const now = app.clock()
  const { uid, identityUid, organization, authTime, act, profile, granted, expireTime } = session
  const { scopes, kept } = limitToSession(session, wish)
  const grants = await app.grants.of(identityUid)
  if (!grants) throw unauthenticated('the account of the session was deleted')
  const pushed = (await app.sessions.of(uid))?.pushed
  const left = Math.floor((Date.parse(expireTime) - now.getTime()) / 1000)
  const lifetime = Math.min(maxLifetime, left)
  const token = await signNarrowed(app.keyring, withGranted(grants, pushed), {
    issuer,
    subject: identityUid,
    now,
    lifetime,
    audiences: wish.audiences,
    scopes,
    kept,
    claims: personClaims(act, profile),
    session: { uid, organization, authTime },
    granted,
  })
  app.lastSeen.note(identityUid, now.toISOString())
  return { token, expiry: new Date((Math.floor(now.getTime() / 1000) + lifetime) * 1000).toISOString() }
}

/**
 * Requested scopes and capabilities within the limits of the session. Throws PERMISSION_DENIED for a scope outside of these
 * limits.
 */
function limitToSession(
  { bound }: Session,
  wish: RequestedToken,
): { scopes: readonly string[]; kept: bigint | undefined } {
  const [most, wanted] = [capabilitiesNamed(bound?.capabilities ?? []), capabilitiesNamed(wish.capabilities)]
  const kept = most === undefined || wanted === undefined ? (most ?? wanted) : most & wanted
  const allowed = bound?.scopes ?? []
  if (allowed.length === 0) return { scopes: wish.scopes, kept }
  if (!wish.scopes.every((scope) => allowed.some((one) => isAtOrBelow(scope, one)))) throw new ScopeOutOfReach()
  return { scopes: wish.scopes.length === 0 ? allowed : wish.scopes, kept }
}

/** First refresh token of a session. Undefined if the session ends no later than its access token, or is that of a browser. */
export async function refreshTokenOf({ app }: Issuing, session: Session): Promise<RefreshToken | undefined> {
  const lasts = Date.parse(session.expireTime) - Date.parse(session.createTime)
  return session.kind === 'client' && lasts > maxLifetime * 1000 ? issueRefreshToken(app, session) : undefined
}

/**
 * Exchanges a refresh token for an access token and the next refresh token. Throws UNAUTHENTICATED if the refresh token is
 * invalid, and INVALID_ARGUMENT for invalid parameters.
 */
export async function refresh(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  issuing: Issuing,
  credential: string | undefined,
  wish: RequestedToken,
): Promise<{ access: IssuedToken; next: RefreshToken }> {
  const { limits } = work.app
  limits.check('source', issuing.source)
  checkRequest(issuing.issuer, wish)
  if (credential === undefined)
    throw unauthenticated('no refresh token was sent; send it in the header "Authorization: Bearer TOKEN"')
  const prepare = (session: Session) => {
    limits.check('identity', session.identityUid)
    return accessTokenOf(issuing, session, wish)
  }
  const used = await countRefusals(limits, issuing.source, () => useRefreshToken(work, credential, prepare))
  return { access: used.prepared, next: used.next }
}
