// Signing in without a password: the token of somebody else's platform becomes a short-lived one of the server.
import { resolve } from 'node:path'
import { isUid } from '#lib/uid.ts'
import { configureDocker } from '../registry/configure-docker.ts'
import { pullToken } from '../registry/pull-token.ts'
import { send } from '../shape/api-client.ts'
import {
  CliError,
  type Command,
  type CommandGroup,
  exitCodes,
  type OptionSpec,
  outputOption,
  type Terminal,
} from '../shape/command.ts'
import { table } from '../shape/plain-text.ts'
import {
  accessToken,
  cachedToken,
  callerToken,
  claimsOf,
  exchange,
  notSignedIn,
  outsideToken,
  type Session,
  sessionOf,
  sessionOptions,
} from '../shape/session.ts'
import { removeProfile, removeToken, removeTokens, userFiles, writeProfile, writeToken } from '../shape/user-files.ts'
import { ambientToken, readTokenFile } from './outside-token.ts'

const audienceOption: OptionSpec = {
  flags: '--audience <audience>',
  summary: 'Who accepts the token: the URL of the API unless given, or the host of the registry; may be repeated',
  repeat: true,
}

const login: Command = {
  name: 'login',
  summary: 'Sign in with a token of your platform, and remember it',
  details: `Without --identity-token the platform's own token is used: of GitHub Actions, of GitLab (PINFOLD_ID_TOKEN), or of the
Kubernetes service account. Tokens are kept in the user's cache folder and the rest in the configuration folder, for this
user only. The API's audience is always among those that get a token.`,
  options: [
    { flags: '--identity-token <file>', summary: 'The file with the token to sign in with; - for standard input' },
    ...sessionOptions,
    audienceOption,
  ],
  async run(terminal, options) {
    const session = sessionOf(terminal, options)
    const { api, identity, files } = session
    if (identity === '') throw new CliError(exitCodes.usage, 'login needs --identity, or PINFOLD_IDENTITY')
    const named = Boolean(options.identity || terminal.env.PINFOLD_IDENTITY)
    const file = fileOf(options.identityToken) ?? (named ? '' : session.identityToken)
    const outside = file === '' ? await ambientToken(terminal, api) : await readTokenFile(terminal, file)

    const tokens = new Map<string, string>()
    for (const audience of new Set([api, ...listOf(options.audience)])) {
      tokens.set(audience, await exchange(session, outside, { audiences: [audience] }))
    }
    const who = await send('GET', new URL('/auth/v1/ok', api), tokens.get(api)!)
    removeTokens(files)
    for (const [audience, token] of tokens) writeToken(files, audience, token)
    writeProfile(files, { api, identity, identityToken: file })
    printWho(terminal, api, who, 'table')
    return exitCodes.ok
  },
}

const status: Command = {
  name: 'status',
  summary: 'Tell who is signed in and what they may do',
  details: 'Ends with 77 when nobody is signed in. PINFOLD_TOKEN, where it is set, is the token that is looked at.',
  options: [
    { flags: '--quick', summary: 'Look at the token that is kept and ask no server' },
    outputOption,
    ...sessionOptions,
  ],
  async run(terminal, options) {
    const session = sessionOf(terminal, options)
    const who = options.quick
      ? quickWho(terminal, session)
      : await send('GET', new URL('/auth/v1/ok', session.api), await callerToken(terminal, session))
    printWho(terminal, session.api, who, options.output)
    return exitCodes.ok
  },
}

const token: Command = {
  name: 'token',
  summary: 'Print an access token, a new one when the one that is kept is about to expire',
  details: `Prints nothing but the token. One for a single audience that nothing narrows is kept until some minutes before it
expires; every other one is exchanged each time.`,
  options: [
    audienceOption,
    { flags: '--scope <uid>', summary: 'Only this group and what is below it; may be repeated', repeat: true },
    {
      flags: '--capabilities <names>',
      summary: 'Only these capabilities, such as repo.list, with commas',
      repeat: true,
    },
    ...sessionOptions,
  ],
  async run(terminal, options) {
    const session = sessionOf(terminal, options)
    if (session.identity === '') throw notSignedIn()
    const given = [...new Set(listOf(options.audience))]
    const audiences = given.length > 0 ? given : [session.api]
    const scopes = listOf(options.scope)
    const capabilities = listOf(options.capabilities).flatMap((names) => names.split(',').map((name) => name.trim()))
    // An empty variable in a script must not end in a token that may do everything.
    if (!scopes.every(isUid)) throw new CliError(exitCodes.usage, '--scope must name a group by its uid')
    if (capabilities.includes('')) throw new CliError(exitCodes.usage, '--capabilities must be names with commas')
    const whole = scopes.length === 0 && capabilities.length === 0 && audiences.length === 1
    terminal.print(
      whole
        ? await accessToken(terminal, session, audiences[0]!)
        : await exchange(session, await outsideToken(terminal, session), { audiences, scopes, capabilities }),
    )
    return exitCodes.ok
  },
}

const logout: Command = {
  name: 'logout',
  summary: 'Forget the tokens and the profile',
  details: 'A token that was handed out stays valid until it expires, an hour at most.',
  options: [{ ...audienceOption, summary: 'Forget only the token for this audience; may be repeated' }],
  async run(terminal, options) {
    const files = userFiles(terminal.env)
    const audiences = listOf(options.audience)
    for (const audience of audiences) removeToken(files, audience)
    if (audiences.length === 0) {
      removeTokens(files)
      removeProfile(files)
    }
    return exitCodes.ok
  },
}

export const auth: CommandGroup = {
  name: 'auth',
  summary: 'Sign in to a server with the token of a CI job, a pod or a cloud workload',
  commands: [login, status, token, configureDocker, pullToken, logout],
}

type Who = Record<string, unknown>
type Held = { group?: { id?: string; name?: string }; role?: { name?: string }; capabilities?: string[] }

/** What the token that is kept says, without asking whether it is still good. */
function quickWho({ env }: Terminal, session: Session): Who {
  const given = env.PINFOLD_TOKEN
  const claims = given ? claimsOf(given) : cachedToken(session, session.api)?.claims
  if (!claims || claims.expiry.getTime() <= Date.now()) throw notSignedIn()
  const { issuer, subject, audience, expiry } = claims
  return { issuer, subject, audience, expiry: expiry.toISOString() }
}

function printWho({ print }: Terminal, api: string, who: Who, output: unknown): void {
  if (output === 'json') {
    print(JSON.stringify({ api, ...who }, undefined, 2))
    return
  }
  const rows = [
    ['identity', String(who.subject ?? '')],
    ['api', api],
    ['audience', listOf(who.audience).join(', ')],
    ['expires', String(who.expiry ?? '')],
  ]
  for (const { group, role, capabilities } of (who.capabilities ?? []) as Held[]) {
    rows.push(['may', `${role?.name ?? (capabilities ?? []).join(', ')} in ${group?.name || group?.id}`])
  }
  for (const line of table(rows)) print(line)
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? (value as string[]) : []
}

/** As the profile keeps it, so that it is found from any folder. */
function fileOf(option: unknown): string | undefined {
  if (typeof option !== 'string' || option === '') return undefined
  return option === '-' ? option : resolve(option)
}
