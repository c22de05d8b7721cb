// Browser sessions: sign-in as the operator, permissions of a session, and sign-out here and at the provider.
import type { Work } from '#app.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import {
  end,
  endByLogoutToken,
  enterByCode,
  idTokenOfSession,
  type LogoutToken,
  newSecret,
  sessionOfCookie,
  sessionsOfPerson,
} from '#domains/iam/sessions/sessions.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { AppError, invalid } from '#lib/errors.ts'
import { type AccessToken, operatorUid } from '../access-token.ts'
import type { Issuing } from '../exchange.ts'
import { checkTimes, readOutsideToken, verifyOutsideToken } from '../outside-token.ts'
import { findSignInProvider, type SignInProvider } from './providers.ts'

export type { Session }
export { operatorUid as operator, sessionOfCookie, sessionsOfPerson }

type SignInWork = Pick<Work, 'app' | 'cause' | 'log'>

/** Signs the browser in as the operator. Returns undefined if the code is invalid. */
export async function enterAsOperator(
  work: SignInWork,
  { source }: Issuing,
  code: string,
): Promise<{ session: Session; cookie: string } | undefined> {
  work.app.limits.check('source', source)
  const cookie = newSecret()
  const session = await enterByCode(work, operatorUid, { code, cookie })
  if (!session) work.app.limits.check('refusal', source)
  else work.log.info('operator signed in', { session: session.uid })
  return session && { session, cookie }
}

/** Permissions of a session cookie, in the form of a verified access token. The token has all permissions of the session. */
export function tokenOfSession(issuer: string, session: Session): AccessToken {
  const { uid, identityUid, organization, authTime, act, profile, granted, createTime, endTime } = session
  const { name, picture, email, emailVerified } = profile
  return {
    subject: identityUid,
    audience: [issuer],
    issuedAt: Math.floor(Date.parse(createTime) / 1000),
    expiry: Math.floor(Date.parse(endTime) / 1000),
    narrowing: undefined,
    narrowed: false,
    session: { uid, organization, authTime },
    upstream: { email, name, picture },
    ...(Object.keys(act).length > 0 && { act }),
    ...(emailVerified && email !== '' && { verifiedEmail: email }),
    ...(granted.size > 0 && { granted }),
  }
}

/**
 * Ends the session. Returns the URL with which the browser also ends the session at the provider. Undefined if the provider has
 * no such URL.
 */
export async function signOut(work: SignInWork, issuing: Issuing, session: Session): Promise<string | undefined> {
  const { app } = work
  const hint = await idTokenOfSession(app, session.uid)
  await app.db.tx((tx) => end(tx, work, session, 'signed-out'))
  try {
    const provider = session.provider === '' ? undefined : await findSignInProvider(app, session.provider)
    if (!provider) return undefined
    const { endSessionUrl } = await import('./protocol.ts')
    return await endSessionUrl(app, provider, hint, `${issuing.issuer}/ui/signin`)
  } catch (error) {
    // The session has ended on this server. So the person gets no error if the provider fails.
    app.log.warn('session at the provider could not be ended', { error })
    return undefined
  }
}

/** Ends the previous session of a browser after a new sign-in. Ignores unknown cookies. */
export async function signOutQuietly(work: SignInWork, cookie: string | undefined): Promise<void> {
  const { app } = work
  const old = cookie === undefined ? undefined : await sessionOfCookie(app, cookie)
  if (old) await app.db.tx((tx) => end(tx, work, old, 'signed-out'))
}

/** Ends another session of the same person. Returns false if the person has no other session with this uid. */
export async function endOther(work: SignInWork, from: Session, uid: string): Promise<boolean> {
  const other = (await sessionsOfPerson(work.app, from)).find((one) => one.uid === uid)
  if (!other) return false
  await work.app.db.tx((tx) => end(tx, work, other, 'ended'))
  return true
}

const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
const maxAgeSeconds = 10 * 60

/**
 * Ends the sessions that a logout token of the provider names (OpenID Connect Back-Channel Logout 1.0). Ends only sessions of
 * this provider. Throws INVALID_ARGUMENT if the token is invalid or was used before. If the server fails, the provider can send
 * the token again.
 */
export async function logOutBackChannel(
  work: SignInWork,
  { source }: Issuing,
  { provider: id, token: text }: { provider: string; token: string },
): Promise<number> {
  const { app } = work
  app.limits.check('source', source)
  const refuse = (error: unknown): AppError => {
    app.limits.check('refusal', source)
    app.log.warn('logout token refused', { provider: id, error })
    return invalid({ field: 'logout_token', description: 'is not accepted' })
  }
  const provider = await findSignInProvider(app, id)
  const token = await provenLogout(work, provider, text).catch((error: unknown) => {
    throw isServerFailure(error) ? error : refuse(error)
  })
  const ended = await endByLogoutToken(work, { ...token, provider: id })
  if (ended === undefined) throw refuse(new Error('used before'))
  return ended
}

/** True for an error of this server. Then the token may be valid. */
function isServerFailure(error: unknown): boolean {
  return error instanceof AppError && (error.code === 'UNAVAILABLE' || error.code === 'INTERNAL')
}

async function provenLogout(
  { app }: SignInWork,
  provider: SignInProvider | undefined,
  text: string,
): Promise<Omit<LogoutToken, 'provider'>> {
  if (!provider) throw new Error('unknown provider')
  const token = readLogoutToken(text)
  const { iss, aud, sub, sid, jti, iat, nonce, events } = token.claims
  checkTimes(token.times, app.clock())
  if (iss !== provider.issuer) throw new Error('iss')
  if (![aud].flat().includes(provider.clientId)) throw new Error('aud')
  if (nonce !== undefined) throw new Error('nonce')
  if (typeof jti !== 'string' || jti === '' || jti.length > 1024) throw new Error('jti')
  if (typeof iat !== 'number' || Math.abs(iat - app.clock().getTime() / 1000) > maxAgeSeconds) throw new Error('iat')
  if (!(events instanceof Object) || !((events as Record<string, unknown>)[logoutEvent] instanceof Object)) {
    throw new Error('events')
  }
  const of = {
    ...(typeof sid === 'string' && { sid }),
    ...(typeof sub === 'string' && { identity: personUid(provider.issuer, sub) }),
  }
  if (Object.keys(of).length === 0 || of.sid === '') throw new Error('no sub and no sid')
  await verifyOutsideToken(token.times, await app.outsideIssuers.keysOf(provider.issuer, token.times.kid))
  return { jti, until: iat + 2 * maxAgeSeconds, of }
}

/** Reads a logout token, without verifying it. Logout tokens have their own `typ`, and the subject is optional. */
function readLogoutToken(text: string) {
  const times = readOutsideToken(text, { typ: /^(?:application\/)?(?:(?:logout\+)?jwt|jose)$/i, subject: 'optional' })
  return { times, claims: times.claims }
}
