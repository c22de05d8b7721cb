// Sign-in of a person with a provider: start, callback, and session.
import type { App, Work } from '#app.ts'
import { newSecret } from '#domains/iam/sessions/sessions.service.ts'
import { issueSignInCode, type SignInCodeOf } from '#domains/iam/sessions/sign-in-codes.service.ts'
import {
  noteAttempt,
  type Proven,
  requireNotBlocked,
  type Session,
  signIn,
  takeAttempt,
} from '#domains/iam/sign-in/sign-in.service.ts'
import { unauthenticated } from '#lib/errors.ts'
import { findClaim } from '#lib/json/claims.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { rootOf } from '#lib/uid.ts'
import { authTimeOf, exchange, type Issuing, notForIdentity } from '../exchange.ts'
import { requireNames } from '../outside-token.ts'
import { personOf } from '../register.ts'
import { profileOf } from './profile.ts'
import type { Identified } from './protocol.ts'
import { findSignInProvider, type SignInProvider } from './providers.ts'
import { accessTokenOf, type RequestedToken, refreshTokenOf } from './tokens.ts'

export { newSecret }

export const callbackPath = '/oauth/callback'

/**
 * Action after the sign-in. `page`: starts a session of this browser. `redirect`: sends tokens to a program on loopback. `code`:
 * sends a code that the program exchanges for tokens.
 */
export type SignInRequest = RequestedToken & {
  exit: 'page' | 'redirect' | 'code'
  /** Target after the sign-in: path of a page of this server, or URL of the program. */
  to: string
  /** Identity for which the provider's token is exchanged. Empty for the identity of the person. */
  identity: string
  refresh: boolean
  register: boolean
  /** True if the provider must ask the person to sign in again, even after a recent sign-in. */
  fresh: boolean
  /** Client ID, PKCE challenge and other values for a code, and the state to return with it. */
  code?: Omit<SignInCodeOf, 'redirect'> & { state: string }
}

/** Sign-in for a page of this server. */
export const forPage: Omit<SignInRequest, 'to'> = {
  exit: 'page',
  audiences: [],
  scopes: [],
  capabilities: [],
  identity: '',
  refresh: false,
  register: true,
  fresh: false,
}

/**
 * Starts a sign-in. Returns the URL of the provider to redirect to. `browser` is the secret in a cookie, so that only this
 * browser can finish the sign-in.
 */
export async function startSignIn(
  { app, issuer, source }: Issuing,
  provider: SignInProvider,
  asked: SignInRequest,
  { browser, invite, hint }: { browser: string; invite: string; hint: string },
): Promise<string> {
  app.limits.check('source', source)
  const { announcesIssuer, authorizationUrl } = await import('./protocol.ts')
  const own = (await announcesIssuer(app, provider)) ? '' : `/${provider.id}`
  const callback = `${issuer}${callbackPath}${own}`
  const [state, nonce, verifier] = [newSecret(), newSecret(), newSecret()]
  const url = await authorizationUrl(app, provider, { state, nonce, verifier, callback, fresh: asked.fresh }, hint)
  await noteAttempt(app, { state, browser, provider: provider.id, callback, asked }, { nonce, verifier, invite })
  return url
}

/** Result of a sign-in. */
export type Outcome = {
  to: string
  /** True if the ID token lacks some groups because there are too many. Then these groups give no roles. */
  groupsLeftOut: boolean
} & (
  | { exit: 'page'; session: Session; cookie: string }
  | { exit: 'redirect'; token: string; refreshToken: string | undefined }
  | { exit: 'code'; code: string; state: string }
)

/** Error of a sign-in after its stored request was found. `asked` has the target to which the error is sent. */
export class SignInFailed extends Error {
  override name = 'SignInFailed'
  readonly asked: SignInRequest
  readonly error: unknown

  constructor(asked: SignInRequest, error: unknown) {
    super('the sign-in has failed', { cause: error })
    this.asked = asked
    this.error = error
  }
}

/**
 * Finishes a sign-in. `path` and `search` are from the callback URL to which the provider redirected the browser. Throws
 * UNAUTHENTICATED if this browser did not start the sign-in, or if the sign-in has expired. Throws SignInFailed for later errors.
 */
export async function finishSignIn(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  issuing: Issuing,
  { path, search, browser }: { path: string; search: string; browser: string | undefined },
): Promise<Outcome> {
  const { app } = work
  const { issuer, source } = issuing
  app.limits.check('source', source)
  const states = new URLSearchParams(search).getAll('state')
  const state = states.length === 1 ? states[0]! : ''
  const attempt = await countRefusals(app.limits, source, async () => {
    const taken = browser === undefined || state === '' ? undefined : await takeAttempt(app, state, browser)
    if (!taken)
      throw unauthenticated('this browser did not start this sign-in, or the sign-in took too long; start it again')
    return taken
  })
  const asked = attempt.asked as SignInRequest
  try {
    // Each provider has its own callback path. On another path, the response could be that of another provider (mix-up attack).
    if (attempt.callback !== issuer + path)
      throw unauthenticated('the identity provider redirected the browser to the wrong callback URL')
    const provider = await findSignInProvider(app, attempt.provider)
    if (!provider) throw unauthenticated('the identity provider was deleted')
    const { nonce, verifier, invite } = attempt.secrets
    const expected = { state, nonce, verifier, callback: attempt.callback, fresh: asked.fresh }
    const { identify } = await import('./protocol.ts')
    const identified = await countRefusals(app.limits, source, () => identify(app, provider, expected, search))
    const proven = provenBy(app, provider, identified)
    if (asked.identity !== '') return await becomeIdentity(issuing, proven, identified, asked)
    return await startSession(work, issuing, proven, asked, invite)
  } catch (error) {
    throw new SignInFailed(asked, error)
  }
}

/**
 * Exchanges the provider's ID token for a token of `identity`. If the provider is that of an organization, the identity
 * must be in the organization.
 */
async function becomeIdentity(
  issuing: Issuing,
  { organization, provider, externalId }: Proven,
  { idToken }: Identified,
  { identity, audiences, scopes, capabilities, to }: SignInRequest,
): Promise<Outcome> {
  if (organization !== '' && rootOf(identity) !== organization) {
    throw notForIdentity()
  }
  if (organization !== '') await requireNotBlocked(issuing.app.db, issuing, provider, externalId)
  const { token } = await exchange(issuing, { credential: idToken, audiences, scopes, capabilities, identity })
  return { exit: 'redirect', to, groupsLeftOut: false, token, refreshToken: undefined }
}

async function startSession(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  issuing: Issuing,
  proven: Proven,
  asked: SignInRequest,
  invite: string,
): Promise<Outcome> {
  const { to, register, refresh } = asked
  const { groupsLeftOut } = proven
  if (asked.exit === 'page') {
    const cookie = newSecret()
    const session = await signIn(work, proven, { kind: 'browser', cookie, refresh: false, invite, register })
    return { exit: 'page', to, groupsLeftOut, session, cookie }
  }
  const session = await signIn(work, proven, { kind: 'client', refresh, invite, register, bound: boundBy(asked) })
  if (asked.code) {
    const { state, ...of } = asked.code
    const code = await issueSignInCode(work.app, session, { ...of, redirect: to })
    return { exit: 'code', to, groupsLeftOut, code, state }
  }
  const { token } = await accessTokenOf(issuing, session, asked)
  const refreshToken = refresh ? await refreshTokenOf(issuing, session) : undefined
  return { exit: 'redirect', to, groupsLeftOut, token, refreshToken: refreshToken?.text }
}

/** Limits of the session. The first token request of a program limits all later tokens (RFC 6749, 6). */
function boundBy({ scopes, capabilities }: SignInRequest): Pick<RequestedToken, 'scopes' | 'capabilities'> {
  return { scopes, capabilities }
}

const maxGroups = 1000
const maxGroupName = 512

/** Person, profile and groups from the claims of a verified ID token. */
export function provenBy(app: App, provider: SignInProvider, { idToken, claims }: Identified): Proven {
  const { id, organization, defaultRole, issuer, clientId, groupsClaim, externalIdClaim } = provider
  const externalId = claims[externalIdClaim]
  requireNames(issuer, String(claims.sub))
  const { sid } = claims
  return {
    provider: id,
    organization,
    defaultRole,
    person: personOf({ issuer, subject: String(claims.sub), claims: { ...claims } }),
    profile: profileOf({ claims: { ...claims } }),
    audience: clientId,
    ...groupsOf(claims, groupsClaim),
    upstreamSid: typeof sid === 'string' && sid.length <= 255 ? sid : '',
    externalId: typeof externalId === 'string' && externalId.length <= 512 ? externalId : '',
    authTime: authTimeOf(claims, app.clock()),
    idToken,
  }
}

/**
 * External groups in the claim. If there are too many groups, a provider may send a URL (`_claim_names`) or only a flag
 * (`hasgroups`) instead. Then the result is marked as incomplete, and the URL is not requested.
 */
function groupsOf(claims: Identified['claims'], name: string): Pick<Proven, 'groups' | 'groupsLeftOut'> {
  if (name === '') return { groups: [], groupsLeftOut: false }
  const value = findClaim(claims, name)
  const elsewhere = claims._claim_names
  const isElsewhere = elsewhere instanceof Object && Object.hasOwn(elsewhere, name)
  const listed = [value ?? []].flat()
  const groups = listed
    .slice(0, maxGroups)
    .filter((one): one is string => typeof one === 'string' && one.length <= maxGroupName)
  const isLong = listed.length > maxGroups
  return { groups, groupsLeftOut: isLong || (value === undefined && (isElsewhere || isTrueClaim(claims.hasgroups))) }
}

function isTrueClaim(claim: unknown): boolean {
  return claim === true || claim === 'true'
}
