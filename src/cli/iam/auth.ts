// Commands to sign in: as a user with a browser, or as a workload that exchanges a token of its platform for a short-lived token
// of the server.
import { resolve } from 'node:path'
import { jsonText, table } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { send } from '../framework/api-client.ts'
import { CliError, exitCodes, failure, usageError } from '../framework/cli-error.ts'
import {
  type Command,
  type Commands,
  type OptionSpec,
  type Options,
  outputOption,
  type Terminal,
} from '../framework/command.ts'
import { withLock } from '../framework/file-lock.ts'
import { readPreferences } from '../framework/preferences.ts'
import {
  accessToken,
  apiOption,
  cachedToken,
  callerToken,
  claimsOf,
  exchange,
  narrowedToken,
  notSignedIn,
  personAt,
  personSessionOf,
  registryOf,
  type Session,
  sessionOf,
  sessionOptions,
} from '../framework/session.ts'
import {
  lockOfPerson,
  removePerson,
  removeProfile,
  removeToken,
  removeTokens,
  userFiles,
  writePerson,
  writeProfile,
  writeToken,
} from '../framework/user-files.ts'
import { ambientToken, readTokenFile } from './outside-token.ts'

const audienceOption: OptionSpec = {
  flags: '--audience <audience>',
  summary: 'Audience of the token: URL of the API, or host of the registry; may be repeated; default: URL of the API',
  repeat: true,
}

const login: Command = {
  details: `Users: Without --identity, a browser opens. Without a browser on this machine, the command prints a code to enter in a
browser elsewhere. The session ends after 30 days without use.
Workloads: With --identity, the command exchanges a token of the platform. It finds the token of GitHub Actions, of GitLab CI
(PINFOLD_ID_TOKEN) or of a Kubernetes service account. For another token, use --identity-token.
Tokens are stored in the cache folder of your user, and the sign-in in the configuration folder. Other users cannot read
them. A token for the API is always requested, also with --audience.
Docker signs in after "pinfold docker configure".`,
  options: [
    { flags: '--headless, --device', summary: 'Sign in with a code in a browser on another machine' },
    { flags: '--browser', summary: 'Sign in with a browser on this machine, even if none is found' },
    {
      flags: '--org-name, --org <name>',
      summary: 'Organization whose identity provider you sign in with: its name, or your work email',
    },
    {
      flags: '--identity-provider <id>',
      summary: 'Identity provider: uid for one of an organization, name for one of the server',
    },
    {
      flags: '--invite-code, --invite <code>',
      summary: 'Link or code of an invitation, to accept it when you sign in',
    },
    { flags: '--identity-token <file>', summary: 'File with the token of a workload; - for standard input' },
    ...sessionOptions,
    audienceOption,
  ],
  async run(terminal, options) {
    const session = sessionOf(terminal, options)
    const { api, identity, files } = session
    if (isForPerson(session, options)) return loginPerson(terminal, session, options)
    if (identity === '')
      throw usageError('--identity-token needs an identity: add --identity UID, or set PINFOLD_IDENTITY')
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
    warnOfOtherServer(terminal, session)
    return exitCodes.ok
  },
}

const userOptions = ['device', 'browser', 'org', 'identityProvider', 'invite']

/** True if the options name no identity and none of them is for workloads. */
function isForPerson({ identity, isPerson }: Session, options: Options): boolean {
  const [asked] = userOptions.filter((name) => options[name] !== undefined)
  if (asked === undefined) return isPerson || (identity === '' && options.identityToken === undefined)
  if (options.identity === undefined && options.identityToken === undefined) return true
  throw usageError(
    '--identity and --identity-token are for workloads, so they cannot be combined with the options for users',
  )
}

/** Signs in a user. Ends the user's previous session after the new one has started. */
async function loginPerson(terminal: Terminal, session: Session, options: Options): Promise<number> {
  const { api, files } = session
  const { signInPerson } = await import('./person-login.ts')
  const { accessToken: token, idToken, refreshToken } = await signInPerson(terminal, api, options)
  const identity = claimsOf(token)?.subject
  if (identity === undefined)
    throw failure(`${api} did not answer the sign-in with a token; check that it is a Pinfold server`)
  const who = await send('GET', new URL('/auth/v1/ok', api), token)
  // The new session replaces the user's former one, even if the profile or the environment names a workload.
  const former = personAt(api, files)
  if (former) await endSession(terminal, former).catch(() => {})
  await withLock(lockOfPerson(files, api), async () => {
    removeTokens(files)
    writePerson(files, { api, identity, refreshToken })
    writeProfile(files, { api, identity: '', identityToken: '' })
    writeToken(files, api, token)
  })
  const fresh = { ...session, identity, identityToken: '', isPerson: true }
  const others = new Set([registryOf(fresh), ...listOf(options.audience)])
  for (const audience of [...others].filter((one) => one !== api)) {
    // Without a refresh token, later commands cannot get tokens, so the ID token is exchanged for all audiences now.
    const asked = { audiences: [audience] }
    if (refreshToken === '') writeToken(files, audience, await exchange(fresh, { token: idToken, from: '' }, asked))
    else if (listOf(options.audience).includes(audience)) await accessToken(terminal, fresh, audience)
  }
  printWho(terminal, api, who, 'table')
  warnOfOtherServer(terminal, session)
  return exitCodes.ok
}

/** Warns if the user's preferences name another server than the one of the sign-in. */
function warnOfOtherServer({ say }: Terminal, { api, files }: Session): void {
  const set = readPreferences(files)['platform.api']
  if (set !== undefined && set !== api) {
    say(
      `pinfold: commands still call ${set}, as in your defaults; to change it: pinfold config set platform.api ${api}`,
    )
  }
}

/** Ends a session at the server. The access token has the session's id as `sid`. */
async function endSession(terminal: Terminal, session: Session): Promise<void> {
  const token = await accessToken(terminal, session, session.api)
  const { sid } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { sid?: unknown }
  if (typeof sid === 'string') await send('DELETE', new URL(`/control/v1/sessions/${sid}`, session.api), token)
}

const status: Command = {
  details: 'Exits with 77 if nobody is signed in. If PINFOLD_TOKEN is set, shows the identity of this token.',
  options: [
    { flags: '--quick', summary: 'Read the stored token, without a request to the server' },
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
  details: `Prints only the token. A token for one audience with all your permissions is stored, and printed again until 5 minutes
before it expires. With --scope, --capabilities or several audiences, each call requests a new token.`,
  options: [
    audienceOption,
    {
      flags: '--scope <group>',
      summary: 'Limit the token to an organization or folder: ORG, ORG/FOLDER or a uid; may be repeated',
      repeat: true,
    },
    {
      flags: '--capabilities <names>',
      summary: 'Limit the token to these capabilities, separated by commas, such as repo.list',
      repeat: true,
    },
    ...sessionOptions,
  ],
  async run(terminal, options) {
    const session = sessionOf(terminal, options)
    if (session.identity === '') throw notSignedIn()
    const given = [...new Set(listOf(options.audience))]
    const audiences = given.length > 0 ? given : [session.api]
    const capabilities = listOf(options.capabilities).flatMap((names) => names.split(',').map((name) => name.trim()))
    // An empty variable in a script must not create a token with all permissions.
    if (listOf(options.scope).includes(''))
      throw usageError('--scope is empty: give an organization, a folder or a uid')
    if (capabilities.includes(''))
      throw usageError('--capabilities has an empty name: give names separated by commas, such as repo.list,tag.list')
    const scopes = await scopesOf(terminal, options)
    const whole = scopes.length === 0 && capabilities.length === 0 && audiences.length === 1
    terminal.print(
      whole
        ? await accessToken(terminal, session, audiences[0]!)
        : await narrowedToken(terminal, session, { audiences, scopes, capabilities }),
    )
    return exitCodes.ok
  },
}

/** Uids of the groups. Sends no request if all names are uids. */
async function scopesOf(terminal: Terminal, options: Options): Promise<string[]> {
  const given = listOf(options.scope)
  if (given.every(isUid)) return given
  const [{ apiReader }, { groupOf }] = await Promise.all([
    import('../framework/api-pages.ts'),
    import('../framework/names.ts'),
  ])
  const api = await apiReader(terminal, options)
  return Promise.all(given.map(async (group) => groupOf(api, group)))
}

const logout: Command = {
  details: `The server refuses the tokens of a user's session from now on. The token of a workload stays valid until it expires, after
at most one hour.`,
  options: [
    apiOption,
    { ...audienceOption, summary: 'Delete only the stored token for this audience; may be repeated' },
  ],
  async run(terminal, options) {
    const files = userFiles(terminal.env)
    const audiences = listOf(options.audience)
    for (const audience of audiences) removeToken(files, audience)
    if (audiences.length > 0) return exitCodes.ok
    const problem = await endAtServer(terminal, options)
    removeTokens(files)
    removeProfile(files)
    if (problem === undefined) return exitCodes.ok
    terminal.say(
      `pinfold: the stored tokens are deleted, but the session on the server has not ended: ${problem.message}`,
    )
    return problem.exitCode
  },
}

/** Ends the user's session at the server. Returns the error if that fails. A session that has already ended is no error. */
async function endAtServer(terminal: Terminal, options: Options): Promise<CliError | undefined> {
  const session = await Promise.resolve()
    .then(() => personSessionOf(terminal, options))
    .catch(() => undefined)
  if (!session) return undefined
  try {
    await endSession(terminal, session)
    return undefined
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return error.exitCode === exitCodes.refused ? undefined : error
  } finally {
    // The lock ensures that no other command is writing a refreshed session.
    const lock = lockOfPerson(session.files, session.api)
    await withLock(lock, async () => removePerson(session.files, session.api))
  }
}

export const auth: Commands = { login, whoami: status, 'tokens print': token, logout }

type Who = Record<string, unknown>
type Held = { group?: { id?: string; name?: string }; role?: { name?: string }; capabilities?: string[] }

/** Identity of the stored token. Does not ask the server whether the token is still valid. */
function quickWho({ env }: Terminal, session: Session): Who {
  const given = env.PINFOLD_TOKEN
  const claims = given ? claimsOf(given) : cachedToken(session, session.api)?.claims
  if (!claims || claims.expiry.getTime() <= Date.now()) throw notSignedIn()
  const { issuer, subject, audience, expiry } = claims
  return { issuer, subject, audience, expiry: expiry.toISOString() }
}

function printWho({ print }: Terminal, api: string, who: Who, output: unknown): void {
  if (output === 'json') {
    print(jsonText({ api, ...who }, 2))
    return
  }
  const rows = [
    ['identity', String(who.subject ?? '')],
    ['api', api],
    ['audience', listOf(who.audience).join(', ')],
    ['expires', String(who.expiry ?? '')],
  ]
  for (const { group, role, capabilities } of (who.capabilities ?? []) as Held[]) {
    rows.push(['permission', `${role?.name ?? (capabilities ?? []).join(', ')} in ${group?.name || group?.id}`])
  }
  for (const line of table(rows)) print(line)
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? (value as string[]) : []
}

/** Absolute path of a token file for the profile, so later commands find the file from any folder. */
function fileOf(option: unknown): string | undefined {
  if (typeof option !== 'string' || option === '') return undefined
  return option === '-' ? option : resolve(option)
}
