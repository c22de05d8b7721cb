// Token grants of programs that a person has approved: authorization code with a loopback redirect, device code, and refresh
// token.
import type { Work } from '#app.ts'
import { createDeviceCode, pollDevice } from '#domains/iam/sessions/device-codes.service.ts'
import { redeemSignInCode } from '#domains/iam/sessions/sign-in-codes.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { maxLifetime } from '../access-token.ts'
import { type ClientRequest, readClientRequest, requireClient, wantsRefresh } from '../clients.ts'
import type { Issuing } from '../exchange.ts'
import { signIdToken } from '../id-token.ts'
import { OAuthRefusal } from '../oauth-words.ts'
import { accessTokenOf, refresh, refreshTokenOf } from './tokens.ts'

type SignInWork = Pick<Work, 'app' | 'cause' | 'log'>

/** Path of the page on which a person enters a user code. */
const devicePath = '/ui/device'

/** POST /oauth/device_authorization (RFC 8628, 3.1). */
export async function authorizeDevice(work: SignInWork, issuing: Issuing, form: URLSearchParams): Promise<object> {
  const { issuer, source } = issuing
  work.app.limits.check('source', source)
  const clientId = requireClient(work.app, form.get('client_id'))
  const asked = readClientRequest(issuer, form)
  const { deviceCode, userCode, expiresIn, interval } = await createDeviceCode(work, { clientId, asked })
  return {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: issuer + devicePath,
    expires_in: expiresIn,
    interval,
  }
}

const words = {
  unknown: ['invalid_grant', 'the device code is unknown or was used before; start the sign-in again'],
  expired: ['expired_token', 'the device code has expired; start the sign-in again'],
  waiting: ['authorization_pending', 'the user has not approved the sign-in yet'],
  'too often': ['slow_down', 'polled too often; wait longer between requests'],
  refused: ['access_denied', 'the user denied the sign-in'],
} as const

/** grant_type=urn:ietf:params:oauth:grant-type:device_code (RFC 8628, 3.4). */
export async function deviceGrant(work: SignInWork, issuing: Issuing, form: URLSearchParams): Promise<object> {
  work.app.limits.check('source', issuing.source)
  const clientId = requireClient(work.app, form.get('client_id'))
  const deviceCode = required(form, 'device_code')
  const polled = await pollDevice(work, { deviceCode, clientId }, (asked) => {
    const wish = asked as ClientRequest
    return { refresh: wantsRefresh(wish), bound: wish }
  })
  if (polled.state === 'unknown') work.app.limits.check('refusal', issuing.source)
  if (polled.state !== 'approved') {
    const [error, description] = words[polled.state]
    throw new OAuthRefusal(error, description)
  }
  const asked = polled.asked as ClientRequest
  // The response always has an ID token, since some existing clients read only the ID token.
  return answerOf(issuing, polled.session, { ...asked, words: [...asked.words, 'openid'] }, { clientId, nonce: '' })
}

/** grant_type=authorization_code with S256 (RFC 7636). */
export async function codeGrant(work: SignInWork, issuing: Issuing, form: URLSearchParams): Promise<object> {
  const { app } = work
  app.limits.check('source', issuing.source)
  const clientId = requireClient(app, form.get('client_id'))
  const shown = {
    code: required(form, 'code'),
    clientId,
    redirect: required(form, 'redirect_uri'),
    verifier: required(form, 'code_verifier'),
  }
  const { session, asked, nonce } = await countRefusals(app.limits, issuing.source, async () => {
    const redeemed = await redeemSignInCode(work, shown)
    if (!redeemed) throw unauthenticated('the code is invalid, has expired or was used before; start the sign-in again')
    return redeemed
  })
  return answerOf(issuing, session, asked as ClientRequest, { clientId, nonce })
}

/** grant_type=refresh_token: the same as the refresh of the STS. */
export async function refreshGrant(work: SignInWork, issuing: Issuing, form: URLSearchParams): Promise<object> {
  requireClient(work.app, form.get('client_id'))
  const wish = readClientRequest(issuing.issuer, form)
  const { access, next } = await refresh(work, issuing, required(form, 'refresh_token'), wish)
  return {
    access_token: access.token,
    token_type: 'Bearer',
    expires_in: secondsUntil(work, access.expiry),
    refresh_token: next.text,
  }
}

async function answerOf(
  issuing: Issuing,
  session: Session,
  wish: ClientRequest,
  says: { clientId: string; nonce: string },
): Promise<object> {
  const { token, expiry } = await accessTokenOf(issuing, session, wish)
  const refreshToken = wantsRefresh(wish) ? await refreshTokenOf(issuing, session) : undefined
  const granted = [...new Set(wish.words)].filter((one) => one !== 'offline_access' || refreshToken)
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: secondsUntil(issuing, expiry),
    scope: [...granted, ...wish.scopes].join(' '),
    ...(granted.includes('openid') && { id_token: await signIdToken(issuing, session, says) }),
    ...(refreshToken && { refresh_token: refreshToken.text }),
  }
}

function secondsUntil({ app }: Pick<Issuing, 'app'>, expiry: string): number {
  return Math.min(maxLifetime, Math.max(0, Math.floor((Date.parse(expiry) - app.clock().getTime()) / 1000)))
}

function required(form: URLSearchParams, name: string): string {
  const value = form.get(name)
  if (value === null || value === '') throw new OAuthRefusal('invalid_request', `${name} is required`)
  if (value.length > 2048) throw new OAuthRefusal('invalid_request', `${name} is too long`)
  return value
}
