// OpenID Connect client for sign-in providers: the authorization URL, and the exchange of the code. All requests are checked by
// our guard for outgoing requests. Each ID token must be signed with a key of the issuer, even if it came over TLS.
import * as client from 'openid-client'
import type { App } from '#app.ts'
import { AppError, unauthenticated } from '#lib/errors.ts'
import { findClaim } from '#lib/json/claims.ts'
import { checkTimes, readOutsideToken, verifyOutsideToken } from '../outside-token.ts'
import type { SignInProvider } from './providers.ts'

/** Values that the response of the provider must match. */
export type Expected = { state: string; nonce: string; verifier: string; callback: string; fresh: boolean }

async function configure(app: App, provider: SignInProvider): Promise<client.Configuration> {
  const metadata = await app.providerDirectory.of(provider.issuer)
  const { issuer, clientId, secret } = provider
  const skew = Math.round((app.clock().getTime() - Date.now()) / 1000)
  const options = { [client.clockSkew]: skew, [client.clockTolerance]: 60 }
  const server = metadata as unknown as client.ServerMetadata
  const config = new client.Configuration(server, clientId, options, authenticationOf(secret, metadata))
  if (app.config.allowInsecureIssuers) client.allowInsecureRequests(config)
  config[client.customFetch] = async (url, { method, headers, body }) => {
    const answer = await app.outgoing.send(url, { method, headers, body: bodyOf(body) })
    const isBare = answer.status === 204 || answer.status === 304
    return new Response(isBare ? null : answer.body, { status: answer.status, headers: answer.headers })
  }
  if (server.issuer !== issuer) throw new Error('the metadata of the identity provider is for another issuer')
  return config
}

/** The library sends only forms, which convert to text. */
function bodyOf(body: unknown): string | undefined {
  return body === null || body === undefined ? undefined : String(body)
}

function authenticationOf(secret: string, metadata: Claims): client.ClientAuth {
  if (secret === '') return client.None()
  const methods = metadata.token_endpoint_auth_methods_supported
  const isPost = Array.isArray(methods) && !methods.includes('client_secret_basic')
  return isPost ? client.ClientSecretPost(secret) : client.ClientSecretBasic(secret)
}

/** True if the provider adds its issuer to the redirect back (RFC 9207). Such providers can share one callback URL. */
export async function announcesIssuer(app: App, provider: SignInProvider): Promise<boolean> {
  const metadata = await app.providerDirectory.of(provider.issuer)
  return metadata.authorization_response_iss_parameter_supported === true
}

/** Authorization URL at the provider. With `fresh`, the provider must ask the person to sign in again. */
export async function authorizationUrl(
  app: App,
  provider: SignInProvider,
  { state, nonce, verifier, callback, fresh }: Expected,
  hint: string,
): Promise<string> {
  const config = await configure(app, provider)
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: callback,
    scope: [...new Set(provider.scopes)].join(' '),
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(fresh && { max_age: '0', prompt: 'login' }),
    ...(hint !== '' && { screen_hint: hint }),
  })
  return safeUrl(app, url)
}

/**
 * URL of the provider to which a browser is redirected. Throws UNAVAILABLE unless the URL is https, or http if the settings allow
 * that.
 */
function safeUrl({ config }: App, url: URL): string {
  if (url.protocol !== 'https:' && !(config.allowInsecureIssuers && url.protocol === 'http:')) {
    throw new AppError('UNAVAILABLE', 'the identity provider redirects users to a URL without https')
  }
  return url.href
}

type Claims = Readonly<Record<string, unknown>>

export type Identified = {
  idToken: string
  /** Claims of the ID token, completed from the provider's userinfo endpoint. */
  claims: Claims
}

/**
 * Exchanges the code of the redirect for an ID token and reads the person's claims. Throws UNAUTHENTICATED if a value does not
 * match `expected`.
 */
export async function identify(
  app: App,
  provider: SignInProvider,
  expected: Expected,
  search: string,
): Promise<Identified> {
  const config = await configure(app, provider)
  const current = new URL(expected.callback)
  current.search = search
  try {
    const tokens = await client.authorizationCodeGrant(config, current, {
      expectedState: expected.state,
      expectedNonce: expected.nonce,
      pkceCodeVerifier: expected.verifier,
      idTokenExpected: true,
      ...(expected.fresh && { maxAge: 600 }),
    })
    const idToken = tokens.id_token!
    const token = readOutsideToken(idToken)
    checkTimes(token, app.clock())
    await verifyOutsideToken(token, await app.outsideIssuers.keysOf(provider.issuer, token.kid))
    const more = await userInfo(app, config, tokens.access_token, token.claims, provider)
    return { idToken, claims: joinClaims(token.claims, more, provider.groupsClaim) }
  } catch (error) {
    if (error instanceof AppError && error.code !== 'UNAUTHENTICATED') throw error
    throw refusalOf(error)
  }
}

async function userInfo(
  app: App,
  config: client.Configuration,
  accessToken: string,
  claims: Claims,
  { groupsClaim }: SignInProvider,
): Promise<Record<string, unknown>> {
  const wanted = ['email', 'email_verified', 'name', ...(groupsClaim === '' ? [] : [groupsClaim])]
  const isComplete = wanted.every((name) => findClaim(claims, name) !== undefined)
  if (isComplete || config.serverMetadata().userinfo_endpoint === undefined) return {}
  try {
    return await client.fetchUserInfo(config, accessToken, String(claims.sub))
  } catch (error) {
    // The ID token is valid, so the sign-in continues. Only name and address may be missing.
    app.log.warn('user info of the provider could not be read', { issuer: config.serverMetadata().issuer, error })
    return {}
  }
}

/**
 * Claims of an ID token, completed from userinfo. `email_verified` applies only to the address in the same source. It is taken from
 * the other source only if both have the same address.
 */
function joinClaims(token: Claims, userInfo: Claims, groupsClaim: string): Claims {
  const claims: Record<string, unknown> = { ...userInfo, ...token }
  const source = token.email === undefined ? userInfo : token
  const isOther = source === token && token.email_verified === undefined && userInfo.email === token.email
  claims.email_verified = isOther ? userInfo.email_verified : source.email_verified
  // If the groups claim is a path into an object, the object of the ID token would replace that of userinfo. Then the groups are
  // copied under their full name.
  const isHidden = groupsClaim !== '' && findClaim(token, groupsClaim) === undefined
  return isHidden ? { ...claims, [groupsClaim]: findClaim(userInfo, groupsClaim) } : claims
}

/** URL with which a browser ends the session at the provider. Undefined if the provider has no such URL. */
export async function endSessionUrl(
  app: App,
  provider: SignInProvider,
  idToken: string,
  back: string,
): Promise<string | undefined> {
  const config = await configure(app, provider)
  if (config.serverMetadata().end_session_endpoint === undefined) return undefined
  const hint = { ...(idToken !== '' && { id_token_hint: idToken }), post_logout_redirect_uri: back }
  return safeUrl(app, client.buildEndSessionUrl(config, hint))
}

/** Error of a failed sign-in. Includes the provider's error code if the code is part of OAuth. The rest is only in the log. */
function refusalOf(error: unknown): AppError {
  if (error instanceof client.AuthorizationResponseError) {
    const word = /^[a-z_]{1,40}$/.test(error.error) ? error.error : 'an error'
    return unauthenticated(`the identity provider returned ${word}`, error)
  }
  return unauthenticated('the response of the identity provider could not be verified; try again', error)
}
