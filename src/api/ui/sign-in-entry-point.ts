// /oauth: sign-in, redirects back from providers, logout tokens of providers, and the check whether an organization has a
// provider of its own.
import type { Headers } from '#edge/answer.ts'
import type { Edge } from '#edge/arrival.ts'
import { maxAnonymousBytes } from '#edge/body-bytes.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { isForm, readBody } from '#edge/read-body.ts'
import { readHeadlessCode } from '#issuer/people/headless.ts'
import {
  findByIdpId,
  findSignInProvider,
  isSignInOrganization,
  offered,
  type SignInProvider,
} from '#issuer/people/providers.ts'
import { logOutBackChannel, signOutQuietly } from '#issuer/people/sessions.ts'
import {
  callbackPath,
  finishSignIn,
  forPage,
  newSecret,
  SignInFailed,
  type SignInRequest,
  startSignIn,
} from '#issuer/people/sign-in.ts'
import { invalid, retryHeaders } from '#lib/errors.ts'
import { toAppError } from '../errors.ts'
import { cookie, noCookie, readCookie } from './cookies.ts'
import { headlessPath } from './device.ts'
import { html } from './html.ts'
import { isAgreed } from './invite-consent.ts'
import { answerTo, readCodeRequest, readOAuth } from './oauth-request.ts'
import { acceptsHtml, isAtUrl, send, sendOn, sendPage, sentenceOf } from './page.ts'
import { isCrossSite, isNotFromOurPages, issuingOf, workOf } from './visit.ts'

const logoutPath = '/oauth/backchannel'
const kinds = ['/oauth', callbackPath, logoutPath, '/orgcheck']

/** Kind of a request by its path. Paths of providers have a suffix. */
function kindOf(path: string): string | undefined {
  return kinds.find((kind) => path === kind || (kind.startsWith('/oauth/') && path.startsWith(`${kind}/`)))
}

/** Entry point of the sign-in. */
export function signInEntryPoint(edge: Edge): EntryPoint {
  return {
    name: 'oauth',
    methods: withVerbs(kinds),
    deadlineMs: edge.app.config.requestTimeoutMs,
    matches: (path) => kindOf(path) !== undefined,
    async serve(arrival) {
      const kind = kindOf(arrival.path)!
      arrival.named(kind)
      const allowed = kind === logoutPath ? ['POST'] : ['GET', 'HEAD']
      if (!allowed.includes(arrival.req.method ?? '')) {
        return send(arrival, 405, 'text/plain', `only ${allowed[0]} is allowed\n`, { allow: allowed.join(', ') })
      }
      if (kind === logoutPath) return handleLogoutToken(arrival)
      if (kind === '/orgcheck') return checkOrganization(arrival)
      if (!isAtUrl(arrival)) return undefined
      return kind === callbackPath ? handleCallback(arrival) : beginSignIn(arrival)
    },
    refuse: refusePage,
  }
}

/** Shows an error, as a page to browsers and as text to programs. */
export function refusePage(arrival: HttpArrival, error: unknown): void {
  const known = toAppError(error)
  if (known.http >= 500)
    arrival.edge.app.failures.request(arrival.edge.app.log, 'page request failed', error, {
      requestId: arrival.requestId,
    })
  const headers = retryHeaders(known)
  if (!acceptsHtml(arrival)) {
    send(arrival, known.http, 'text/plain; charset=utf-8', `${known.message}\n`, headers)
    return
  }
  const body = html`<p role="alert">${sentenceOf(known.message)}</p>
<p>Request ID: ${arrival.requestId}</p>
<p><a href="/ui/">Go to the console</a></p>`
  sendPage(arrival, { title: 'The request failed', body, status: known.http, headers })
}

/**
 * Starts a sign-in for a program that has opened a browser. The later redirect leads only to a program on the person's own
 * machine.
 */
async function beginSignIn(arrival: HttpArrival): Promise<void> {
  const query = new URLSearchParams(arrival.search)
  if (query.has('headless_code')) return beginHeadless(arrival, query)
  if (query.has('response_type')) return beginCode(arrival, query)
  const asked = readOAuth(arrival.edge.url, query)
  if (asked.refresh && isCrossSite(arrival)) return sendLoopbackQuestion(arrival, query, asked)
  await goToProvider(arrival, query, asked)
}

/** Redirects to the provider of the request. If the request has an invite, first asks the person to accept it. */
async function goToProvider(arrival: HttpArrival, query: URLSearchParams, asked: SignInRequest): Promise<void> {
  const provider = await chooseProvider(arrival, query)
  if (!provider) return sendProviderChoice(arrival)
  const invite = query.get('invite') ?? ''
  if (invite !== '' && !(await isAgreed(arrival, invite))) return
  await sendToProvider(arrival, provider, asked, { invite, hint: query.get('screen_hint') ?? '' })
}

/** Starts a sign-in for a program that will exchange a code for tokens. */
async function beginCode(arrival: HttpArrival, query: URLSearchParams): Promise<void> {
  const { app, url } = arrival.edge
  const asked = readCodeRequest(app, url, query)
  if ('error' in asked) {
    const { to, error, description, state } = asked
    const answer = { error, error_description: description, ...(state && { state }), iss: url }
    return sendOn(arrival, answerTo(to, answer), {}, 302)
  }
  if (asked.refresh && isCrossSite(arrival)) return sendLoopbackQuestion(arrival, query, asked)
  await goToProvider(arrival, query, asked)
}

/**
 * Asks for a click if another site has led the browser here. Otherwise the person might be signed in unnoticed: a provider may
 * ask nothing, and the program's session may last for months.
 */
function sendLoopbackQuestion(arrival: HttpArrival, query: URLSearchParams, { to }: SignInRequest): void {
  const body = html`<p>Another website has sent you here. If you continue, a program on this machine that listens at
<bdi>${new URL(to).host}</bdi> can act as you for up to three months.</p>
<p>Authorize the program only if you have just started it yourself.</p>
<p><a class="button" href="/oauth?${query.toString()}">Authorize</a> <a class="button" href="/ui/">Cancel</a></p>`
  sendPage(arrival, { title: 'Authorize the program on this machine?', body })
}

/**
 * Starts a sign-in for a program without a browser. The person opens the program's link, signs in, and approves the program on a
 * page.
 */
async function beginHeadless(arrival: HttpArrival, query: URLSearchParams): Promise<void> {
  const code = readHeadlessCode(query.get('headless_code') ?? '', 'headless_code')
  const to = `${headlessPath}?${new URLSearchParams({ code })}`
  const isNamed = ['idp_id', 'connection', 'invite'].some((name) => query.get(name))
  if (!isNamed) return sendOn(arrival, to)
  // If the browser does not come from one of our pages, shows the sign-in page first. Another site could otherwise choose the
  // account for the person.
  if (isNotFromOurPages(arrival)) {
    const org = query.get('idp_id') ?? ''
    return sendOn(arrival, `/ui/signin?${new URLSearchParams({ ...(org !== '' && { org }), return: to })}`)
  }
  await goToProvider(arrival, query, { ...forPage, to, register: query.get('skip_registration') !== 'true' })
}

/** Provider that the request names. Without a name, the only provider if there is just one. */
async function chooseProvider(
  { edge: { app } }: HttpArrival,
  query: URLSearchParams,
): Promise<SignInProvider | undefined> {
  const [idpId, connection] = [query.get('idp_id'), query.get('connection')]
  if (idpId !== null && idpId !== '') return required(await findByIdpId(app, idpId), 'idp_id')
  if (connection !== null && connection !== '') {
    const isOffered = offered({ config: app.config }).some(({ id }) => id === connection)
    return required(isOffered ? await findSignInProvider(app, connection) : undefined, 'connection')
  }
  const [only, ...others] = offered({ config: app.config })
  return only && others.length === 0 ? findSignInProvider(app, only.id) : undefined
}

/** Throws INVALID_ARGUMENT for an unknown provider. The error does not list the known ones. */
export function required(provider: SignInProvider | undefined, field: string): SignInProvider {
  if (!provider)
    throw invalid({
      field,
      description: 'does not name an identity provider of this server; check the name, or ask the operator',
    })
  return provider
}

/** Shows a page with a link for each provider. Each link repeats the request with that provider. */
function sendProviderChoice(arrival: HttpArrival): void {
  const links = offered({ config: arrival.edge.app.config }).map(({ id, label }) => {
    const query = new URLSearchParams(arrival.search)
    query.set('connection', id)
    return html`<li><a class="button" href="/oauth?${query.toString()}">Sign in with ${label}</a></li>\n`
  })
  const body = html`${
    links.length > 0
      ? html`<ul class="choices">${links}</ul>`
      : html`<p role="alert">You cannot sign in yet, because this server has no identity provider for all users. Start the program again
with the name of your organization, such as <code>pinfold login --org NAME</code>.</p>`
  }`
  sendPage(arrival, { title: 'Sign in', body, status: links.length > 0 ? 200 : 400 })
}

const attemptSeconds = 10 * 60

/** Starts a sign-in. A cookie ensures that only this browser can finish it. */
export async function sendToProvider(
  arrival: HttpArrival,
  provider: SignInProvider,
  asked: SignInRequest,
  more: { invite: string; hint: string },
): Promise<void> {
  const browser = readCookie(arrival, 'pinfold-signin') ?? newSecret()
  const url = await startSignIn(issuingOf(arrival), provider, asked, { browser, ...more })
  const bound = cookie(arrival, 'pinfold-signin', browser, attemptSeconds)
  const cookies = more.invite === '' ? [bound] : [bound, noCookie(arrival, 'pinfold-invite')]
  sendOn(arrival, url, { 'set-cookie': cookies }, 302)
}

/** Handles the redirect back from the provider. */
async function handleCallback(arrival: HttpArrival): Promise<void> {
  const browser = readCookie(arrival, 'pinfold-signin')
  const { path, search } = arrival
  try {
    const outcome = await finishSignIn(workOf(arrival), issuingOf(arrival), { path, search, browser })
    const goOn = (to: string, headers: Headers, status?: number) =>
      outcome.groupsLeftOut ? sendMissingGroups(arrival, to, headers) : sendOn(arrival, to, headers, status)
    if (outcome.exit === 'redirect') {
      const { token, refreshToken } = outcome
      return goOn(answerTo(outcome.to, { token, refresh_token: refreshToken }), {}, 302)
    }
    if (outcome.exit === 'code') {
      const { to, code, state } = outcome
      return goOn(answerTo(to, { code, ...(state && { state }), iss: arrival.edge.url }), {}, 302)
    }
    arrival.caller = { ...arrival.caller, uid: outcome.session.identityUid }
    await signOutQuietly(workOf(arrival, outcome.session.identityUid), readCookie(arrival, 'pinfold'))
    goOn(outcome.to, { 'set-cookie': cookie(arrival, 'pinfold', outcome.cookie) })
  } catch (error) {
    if (!(error instanceof SignInFailed)) throw error
    sendFailure(arrival, error)
  }
}

/** Shows why the person did not get some roles. Continues to the next page after a few seconds. */
function sendMissingGroups(arrival: HttpArrival, location: string, headers: Headers): void {
  const body = html`<p role="status">Your identity provider did not send your groups, because there are too many of them. Roles that
your organization gives to groups have no effect in this session. Your other roles have.</p>
<p>The administrator of the identity provider can limit the groups to those that are assigned to this application.</p>
<p><a class="button" href="${location}">Continue</a></p>`
  sendPage(arrival, { title: 'You are signed in', body, headers: { ...headers, refresh: `15; url=${location}` } })
}

function sendFailure(arrival: HttpArrival, { asked, error }: SignInFailed): void {
  const known = toAppError(error)
  const { failures, log } = arrival.edge.app
  if (known.http >= 500) failures.request(log, 'sign-in failed', error, { requestId: arrival.requestId })
  else log.info('sign-in refused', { requestId: arrival.requestId, code: known.code, reason: known.message })
  if (asked.exit === 'redirect') {
    const answer = { error: known.message, status_code: String(known.http) }
    sendOn(arrival, answerTo(asked.to, answer), {}, 302)
    return
  }
  if (asked.code) {
    const { state } = asked.code
    const word = known.http >= 500 ? 'server_error' : 'access_denied'
    const answer = { error: word, error_description: known.message, ...(state && { state }), iss: arrival.edge.url }
    sendOn(arrival, answerTo(asked.to, answer), {}, 302)
    return
  }
  const again = new URLSearchParams({ return: asked.to })
  const body = html`<p role="alert">${sentenceOf(known.message)}</p>
${known.reason === 'REGISTRATION_REQUIRED' && html`<p><a href="/ui/invite">Use an invitation</a></p>`}
<p>Request ID: ${arrival.requestId}</p>
<p><a class="button" href="/ui/signin?${again.toString()}">Try again</a></p>`
  sendPage(arrival, { title: 'Sign-in failed', body, status: known.http })
}

/** Handles a logout token (OpenID Connect Back-Channel Logout 1.0). */
async function handleLogoutToken(arrival: HttpArrival): Promise<void> {
  const { req, path } = arrival
  if (!isForm(req))
    throw invalid({ field: 'logout_token', description: 'must be sent as application/x-www-form-urlencoded' })
  const form = new URLSearchParams((await readBody(arrival, maxAnonymousBytes)).toString('utf8'))
  const provider = path.slice(logoutPath.length + 1)
  const token = form.get('logout_token') ?? ''
  const sessions = await logOutBackChannel(workOf(arrival), issuingOf(arrival), { provider, token })
  const { log } = arrival.edge.app
  if (sessions > 0) log.info('sessions ended by a logout token of the provider', { provider, sessions })
  // An unknown session gets the same response, since it may already have ended.
  else log.warn('logout token matches no session', { provider })
  send(arrival, 200, 'text/plain', '')
}

async function checkOrganization(arrival: HttpArrival): Promise<void> {
  const { app } = arrival.edge
  app.limits.check('source', arrival.source)
  const name = new URLSearchParams(arrival.search).get('name') ?? ''
  send(arrival, 200, 'application/json', String(await isSignInOrganization(app, name)))
}
