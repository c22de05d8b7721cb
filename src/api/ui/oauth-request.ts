// GET /oauth: sign-in requests of programs that open a browser.

import type { App } from '#app.ts'
import { type ClientRequest, readClientRequest, requireClient, wantsRefresh } from '#issuer/clients.ts'
import { OAuthRefusal } from '#issuer/oauth-words.ts'
import type { SignInRequest } from '#issuer/people/sign-in.ts'
import { checkRequest } from '#issuer/people/tokens.ts'
import { AppError, type FieldViolation, invalid } from '#lib/errors.ts'
import { decodePercent } from '#lib/net/percent-encoding.ts'

const loopback = ['localhost', '127.0.0.1', '[::1]']
const maxRedirect = 2048

/**
 * Redirect URL of a program on the person's machine, at any port. Undefined for any other URL. The query may contain `token`,
 * `refresh_token` and `error` if the program accepts these members.
 */
export function readRedirect(text: string | null): URL | undefined {
  const url = text === null || text.length > maxRedirect ? null : URL.parse(text)
  const isOurs = url?.protocol === 'http:' && loopback.includes(url.hostname) && url.username + url.password === ''
  return isOurs && url.hash === '' ? url : undefined
}

/**
 * Reads the request of a program. Throws INVALID_ARGUMENT, without a redirect to the program, since its redirect URL may be
 * invalid too.
 */
export function readOAuth(issuer: string, query: URLSearchParams): SignInRequest {
  const problems: FieldViolation[] = []
  const addProblem = (field: string, description: string) => problems.push({ field, description })
  const exit = query.get('exit')
  if (exit !== null && exit !== 'redirect') addProblem('exit', 'must be redirect')
  const redirect = readRedirect(query.get('redirect'))
  if (!redirect) addProblem('redirect', 'must be an http URL of localhost, 127.0.0.1 or [::1]')
  for (const name of ['redirect', 'idp_id', 'connection', 'invite', 'identity']) {
    if (query.getAll(name).length > 1) addProblem(name, 'must be given only once')
  }
  const [first, ...more] = problems
  if (first) throw invalid(first, ...more)

  const audiences = query.getAll('audience').flatMap((one) => one.split(',').filter((text) => text !== ''))
  const asked: SignInRequest = {
    exit: 'redirect',
    to: redirect!.href,
    // Decodes the scopes again, since clients escape them twice.
    scopes: query.getAll('scope').flatMap((one) =>
      decodePercent(one)
        .split(/[ ,]/)
        .filter((text) => text !== ''),
    ),
    audiences: audiences.length > 0 ? audiences : [issuer],
    capabilities: [],
    identity: query.get('identity') ?? '',
    refresh: query.get('create_refresh_token') === 'true',
    register: query.get('skip_registration') !== 'true',
    fresh: query.get('max_age') === '0',
  }
  checkRequest(issuer, asked, asked.identity)
  return asked
}

/** OAuth error for the program whose request is refused. */
export type CodeRefusal = { to: string; state: string; error: string; description: string }

const maxState = 1024
const maxNonce = 512

/**
 * Reads a request for a code (RFC 6749, 4.1.1, with S256 of RFC 7636). Throws INVALID_ARGUMENT if the redirect URL is not on the
 * person's machine. All other problems are returned as an OAuth error for the program.
 */
export function readCodeRequest(app: App, issuer: string, query: URLSearchParams): SignInRequest | CodeRefusal {
  for (const name of ['client_id', 'redirect_uri', 'state', 'idp_id', 'connection', 'invite']) {
    if (query.getAll(name).length > 1) throw invalid({ field: name, description: 'must be given only once' })
  }
  const redirect = readRedirect(query.get('redirect_uri'))
  if (!redirect) {
    throw invalid({ field: 'redirect_uri', description: 'must be an http URL of localhost, 127.0.0.1 or [::1]' })
  }
  const state = query.get('state') ?? ''
  if (state.length > maxState)
    throw invalid({ field: 'state', description: `must have at most ${maxState} characters` })
  try {
    const clientId = requireClient(app, query.get('client_id'))
    const code = codeOf(query, clientId, state)
    const { wish, ...asked } = parseCodeRequest(issuer, query)
    return { ...asked, to: query.get('redirect_uri')!, code: { ...code, asked: wish } }
  } catch (error) {
    const { error: word, message } = refusalOf(error)
    return { to: redirect.href, state, error: word, description: message }
  }
}

function refusalOf(error: unknown): OAuthRefusal {
  if (error instanceof OAuthRefusal) return error
  if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error
  return new OAuthRefusal('invalid_request', error.message)
}

type CodeRequest = Omit<SignInRequest, 'to' | 'code'> & { wish: ClientRequest }

function parseCodeRequest(issuer: string, query: URLSearchParams): CodeRequest {
  const prompts = (query.get('prompt') ?? '').split(' ')
  // A sign-in without any prompt is refused, since the provider must confirm the person.
  if (prompts.includes('none'))
    throw new OAuthRefusal('login_required', 'prompt=none is not supported: the user has to sign in')
  const wish = readClientRequest(issuer, query)
  const { audiences, scopes, capabilities } = wish
  return {
    wish,
    audiences,
    scopes,
    capabilities,
    exit: 'code',
    identity: '',
    refresh: wantsRefresh(wish),
    register: true,
    fresh: prompts.includes('login') || query.has('max_age'),
  }
}

function codeOf(
  query: URLSearchParams,
  clientId: string,
  state: string,
): Omit<NonNullable<SignInRequest['code']>, 'asked'> {
  const [only] = ['request', 'request_uri'].filter((name) => query.has(name))
  if (only) throw new OAuthRefusal(`${only}_not_supported`, `${only} is not supported`)
  if (query.get('response_type') !== 'code') {
    throw new OAuthRefusal('unsupported_response_type', 'response_type must be code')
  }
  if ((query.get('response_mode') ?? 'query') !== 'query') {
    throw new OAuthRefusal('invalid_request', 'response_mode must be query')
  }
  const challenge = query.get('code_challenge') ?? ''
  if (query.get('code_challenge_method') !== 'S256' || !/^[A-Za-z0-9_-]{43}$/.test(challenge)) {
    throw new OAuthRefusal('invalid_request', 'a code_challenge with the method S256 is required')
  }
  const nonce = query.get('nonce') ?? ''
  if (nonce.length > maxNonce) throw new OAuthRefusal('invalid_request', 'nonce is too long')
  return { clientId, challenge, nonce, state }
}

const answers = ['token', 'refresh_token', 'error', 'status_code']

/** Redirect URL with the result. Contains only members that the program accepts and that are not empty. */
export function answerTo(redirect: string, answer: Record<string, string | undefined>): string {
  const url = new URL(redirect)
  for (const name of [...answers, ...Object.keys(answer)]) url.searchParams.delete(name)
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}
