// Sign-in of a user with a browser: on this machine, or on another device with a code.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as oidc from 'openid-client'
import { plain } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { checkDestination } from '../framework/api-client.ts'
import { CliError, exitCodes, failure, usageError } from '../framework/cli-error.ts'
import type { Options, Terminal } from '../framework/command.ts'

const client = 'pinfold'
const scope = 'openid email profile offline_access'
const patienceMs = 10 * 60_000

export type Tokens = { accessToken: string; idToken: string; refreshToken: string }

/** Signs in with a browser on this machine. Uses a device code if there is no browser, or if the options request it. */
export async function signInPerson(terminal: Terminal, api: string, options: Options): Promise<Tokens> {
  const named = namedProvider(options)
  const config = await discover(api)
  // The code of a link is its fragment.
  const invite = typeof options.invite === 'string' ? options.invite.replace(/^.*#/, '') : ''
  const byCode = options.device === true || !(options.browser === true || hasBrowser(terminal))
  if (!byCode) return byBrowser(terminal, config, { ...named, ...(invite && { invite }) })
  if (invite !== '') {
    const next = `accept the invitation in a browser at ${api}/ui/invite, then run pinfold login without --invite-code`
    throw usageError(`not signed in: no browser was found on this machine\n${next}`)
  }
  return byDevice(terminal, api, config, options)
}

/** Query parameters of the sign-in page for `--org` and `--identity-provider`. */
function namedProvider({ org, identityProvider }: Options): Record<string, string> {
  if (org !== undefined && identityProvider !== undefined) {
    throw usageError('--org and --identity-provider cannot be combined; give one of them')
  }
  if (org !== undefined) return { idp_id: organizationOf(org) }
  if (identityProvider === undefined) return {}
  const id = String(identityProvider)
  return isUid(id) ? { idp_id: id } : { connection: id }
}

/** Name or email domain of an organization. Only the `@` and the domain of an email address become part of a URL. */
const organizationOf = (org: Options[string]): string => String(org).replace(/^.*@/, '@')

async function discover(api: string): Promise<oidc.Configuration> {
  const url = new URL(api)
  checkDestination(url)
  try {
    return await oidc.discovery(url, client, undefined, oidc.None(), {
      execute: url.protocol === 'http:' ? [oidc.allowInsecureRequests] : [],
      timeout: 30,
    })
  } catch (error) {
    throw toCliError(`cannot read the sign-in configuration of ${api}`, error)
  }
}

/** As in RFC 8252, a port of this machine receives the code. PKCE makes the code useless for any other program. */
async function byBrowser(
  terminal: Terminal,
  config: oidc.Configuration,
  more: Record<string, string>,
): Promise<Tokens> {
  const [state, nonce, verifier] = [oidc.randomState(), oidc.randomNonce(), oidc.randomPKCECodeVerifier()]
  await using listening = await listen(state)
  const url = oidc.buildAuthorizationUrl(config, {
    redirect_uri: listening.url,
    scope,
    state,
    nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...more,
  })
  terminal.say(`Sign in with your browser. If it does not open, go to\n${url.href}`)
  openBrowser(terminal, url.href)
  const back = await listening.answer
  try {
    return tokensOf(
      await oidc.authorizationCodeGrant(config, back, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      }),
    )
  } catch (error) {
    throw toCliError('the sign-in failed', error)
  }
}

/** Waits for the redirect of the browser. Refuses all other requests, and then continues to wait. */
async function listen(state: string) {
  const arrived = Promise.withResolvers<URL>()
  const late = setTimeout(() => {
    arrived.reject(
      failure('not signed in: nobody signed in with the browser within 10 minutes; run pinfold login again'),
    )
  }, patienceMs)
  let base = ''
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    const url = URL.parse(req.url ?? '', base)
    const isAnswer = req.method === 'GET' && url?.pathname === '/callback' && url.searchParams.get('state') === state
    const text = isAnswer ? pageOf(url.searchParams.has('code')) : ''
    res.writeHead(isAnswer ? 200 : 404, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'",
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      connection: 'close',
    })
    res.end(text, () => isAnswer && arrived.resolve(url))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  // The caller gets the error when it awaits the answer.
  arrived.promise.catch(() => {})
  return {
    url: `${base}/callback`,
    answer: arrived.promise,
    async [Symbol.asyncDispose]() {
      clearTimeout(late)
      server.close()
      server.closeAllConnections()
    },
  }
}

function pageOf(isDone: boolean): string {
  const [title, text] = isDone
    ? ['Almost done', 'Continue in the terminal where you ran pinfold login. You can close this page.']
    : ['The sign-in failed', 'The terminal where you ran pinfold login shows the reason.']
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title} – Pinfold</title></head>
<body><main><h1>${title}</h1><p>${text}</p></main></body></html>
`
}

async function byDevice(
  terminal: Terminal,
  api: string,
  config: oidc.Configuration,
  { org, identityProvider }: Options,
): Promise<Tokens> {
  try {
    const device = await oidc.initiateDeviceAuthorization(config, { scope })
    const name = org === undefined ? identityProvider : organizationOf(org)
    const query = new URLSearchParams({ org: String(name), return: '/ui/device' })
    const code = device.user_code.replace(/^(.{4})(.{4})$/, '$1-$2')
    if (name !== undefined) terminal.say(`Sign in at ${api}/ui/signin?${query.toString()}`)
    terminal.say(`Go to ${plain(device.verification_uri)} and enter the code ${plain(code)}`)
    return tokensOf(await oidc.pollDeviceAuthorizationGrant(config, device))
  } catch (error) {
    throw toCliError('the sign-in failed', error)
  }
}

function tokensOf({ access_token, id_token = '', refresh_token = '' }: oidc.TokenEndpointResponse): Tokens {
  return { accessToken: access_token, idToken: id_token, refreshToken: refresh_token }
}

/** True if a browser is installed, and this is no remote session (SSH). */
function hasBrowser({ env }: Terminal): boolean {
  if (env.BROWSER) return true
  if (process.platform === 'darwin' || process.platform === 'win32') return !env.SSH_CONNECTION
  return Boolean(env.DISPLAY || env.WAYLAND_DISPLAY)
}

function openBrowser({ env }: Terminal, url: string): void {
  const programs: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
    darwin: ['open'],
    win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  }
  const [program, ...args] = env.BROWSER ? [env.BROWSER] : (programs[process.platform] ?? ['xdg-open'])
  // If the browser cannot be opened, the user opens the printed address.
  spawn(program, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}

function toCliError(what: string, error: unknown): CliError {
  if (error instanceof CliError) return error
  if (error instanceof oidc.AuthorizationResponseError || error instanceof oidc.ResponseBodyError) {
    const { error: word, error_description: text } = error
    const known = {
      access_denied: 'access was denied',
      expired_token: 'the code has expired; run pinfold login again',
    }[word]
    return new CliError(exitCodes.refused, `${what}: ${plain(text ?? known ?? word)}`, error)
  }
  const { message, cause } = error as Error
  const { code } = ((cause as Error | undefined)?.cause ?? cause ?? {}) as NodeJS.ErrnoException
  const isAway = ['ECONNREFUSED', 'ENOTFOUND', 'ECONNRESET', 'ETIMEDOUT', 'EAI_AGAIN'].includes(code ?? '')
  return new CliError(isAway ? exitCodes.unavailable : exitCodes.failed, `${what}: ${plain(code ?? message)}`, error)
}
