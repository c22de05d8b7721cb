// Identity and token of a command. Options have priority over environment variables, then come the profile and the defaults.
import { baseUrl } from '#config/basics.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { ambientToken, type OutsideToken, readTokenFile } from '../iam/outside-token.ts'
import { ApiError, checkToken, send } from './api-client.ts'
import { CliError, exitCodes, failure } from './cli-error.ts'
import type { OptionSpec, Options, Terminal } from './command.ts'
import { refreshPerson, type TokenRequest } from './person-session.ts'
import { readPreferences } from './preferences.ts'
import {
  type Profile,
  readPerson,
  readProfile,
  readToken,
  type UserFiles,
  userFiles,
  writeToken,
} from './user-files.ts'

/** Address at which `npm start` serves. */
const defaultApi = 'http://127.0.0.1:8080'
/** Time before the expiry at which a cached token is replaced, so that the next command can still use the token. */
const earlyMs = 5 * 60_000

export const apiOption: OptionSpec = {
  flags: '--api <url>',
  summary: `URL of the server (PINFOLD_API); default: the server of your last sign-in, else ${defaultApi}`,
}
export const sessionOptions: readonly OptionSpec[] = [
  apiOption,
  {
    flags: '--identity <uid>',
    summary: 'Identity to act as (PINFOLD_IDENTITY); default: the identity of your last sign-in',
  },
]

export type Session = {
  /** Public URL of the server, which is the audience of its tokens. If the URL is unknown, the address that the command calls. */
  api: string
  /** Uid of the identity. Empty if it is unknown. */
  identity: string
  /** Location of the outside token, in the form that the profile stores. */
  identityToken: string
  /** True if the identity is a user who has signed in on this machine. */
  isPerson: boolean
  files: UserFiles
}

/**
 * Claims of a token that this server issued. The signature is not verified, since the user's own files or environment have the
 * token.
 */
type TokenClaims = { issuer: string; subject: string; audience: string[]; expiry: Date }

/**
 * Session of a command. The profile is used only for the server that it names, and its outside token only for the identity that
 * it names.
 */
export function sessionOf({ env }: Terminal, options: Options): Session {
  const files = userFiles(env)
  const profile = readProfile(files)
  const url = serverOf(env, options, profile, files)
  const own = profile?.api === url ? profile : undefined
  // A profile with an identity is newer than the user's sign-in at this server, so it has priority.
  const person = own?.identity ? undefined : readPerson(files, url)
  const identity = pick([
    [options.identity, '--identity'],
    [env.PINFOLD_IDENTITY, 'PINFOLD_IDENTITY'],
    [own?.identity, files.profile],
    [person?.identity, files.people],
  ])
  if (identity && !isUid(identity.value)) {
    const code = identity.name === '--identity' ? exitCodes.usage : exitCodes.config
    throw new CliError(code, `${identity.name} must be the uid of an identity`)
  }
  const identityToken = own?.identity === identity?.value ? (own?.identityToken ?? '') : ''
  const isPerson = identity?.name === files.people
  return { api: url, identity: identity?.value ?? '', identityToken, isPerson, files }
}

/**
 * Session of the user who has signed in at the server, even if the profile or the environment names a workload. Ignores an
 * unreadable profile.
 */
export function personSessionOf({ env }: Terminal, options: Options): Session | undefined {
  const files = userFiles(env)
  let profile: Profile | undefined
  try {
    profile = readProfile(files)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
  return personAt(serverOf(env, options, profile, files), files)
}

/** Session of the user who has signed in at one server. */
export function personAt(api: string, files: UserFiles): Session | undefined {
  const person = readPerson(files, api)
  return person && { api, identity: person.identity, identityToken: '', isPerson: true, files }
}

function serverOf(env: Terminal['env'], options: Options, profile: Profile | undefined, files: UserFiles): string {
  const api = pick([
    [options.api, '--api'],
    [env.PINFOLD_API, 'PINFOLD_API'],
    [readPreferences(files)['platform.api'], files.config],
    [profile?.api, files.profile],
  ])
  return api ? baseUrl(api.value, api.name) : defaultApi
}

/** Audience of registry tokens: the host of the API, since the same server has the registry. */
export function registryOf({ api }: Session): string {
  return new URL(api).host
}

function pick(
  given: readonly (readonly [value: unknown, name: string])[],
): { value: string; name: string } | undefined {
  const [value, name] = given.find(([one]) => typeof one === 'string' && one !== '') ?? []
  return typeof value === 'string' && name !== undefined ? { value, name } : undefined
}

/** Reads the outside token again, from the source that was set at login. */
export async function outsideToken(terminal: Terminal, { api, identityToken }: Session): Promise<OutsideToken> {
  if (identityToken === '') return ambientToken(terminal, api)
  const again = 'run pinfold login again'
  if (identityToken === '-') {
    throw new CliError(
      exitCodes.refused,
      `the token of your sign-in came from standard input, so it was not stored; ${again}`,
    )
  }
  return readTokenFile(terminal, identityToken).catch((error: Error) => {
    throw new CliError(exitCodes.refused, `${error.message}; ${again}`, error)
  })
}

/** Exchanges the outside token for an access token of the server. */
export async function exchange(
  { api, identity }: Pick<Session, 'api' | 'identity'>,
  outside: OutsideToken,
  asked: TokenRequest,
): Promise<string> {
  if (identity === '') throw notSignedIn()
  const url = new URL('/sts/exchange', api)
  for (const audience of asked.audiences) url.searchParams.append('aud', audience)
  for (const scope of asked.scopes ?? []) url.searchParams.append('scopes', scope)
  for (const capability of asked.capabilities ?? []) url.searchParams.append('cap', capability)
  url.searchParams.set('identity', identity)
  const { token } = await send('POST', url, outside.token)
  if (typeof token !== 'string' || !claimsOf(token)) {
    throw failure(`${api} did not answer the token exchange with a token; check that it is a Pinfold server`)
  }
  return token
}

/**
 * Access token with all permissions, for one audience. Returns the cached token until some minutes before its expiry, then a new
 * one. If no new token can be fetched, returns the cached one until it expires, unless the server refused.
 */
export async function accessToken(terminal: Terminal, session: Session, audience: string): Promise<string> {
  if (session.identity === '') throw notSignedIn()
  const cached = cachedToken(session, audience)
  const left = cached ? cached.claims.expiry.getTime() - Date.now() : 0
  if (cached && left > earlyMs) return cached.token
  try {
    if (session.isPerson) return await personToken(terminal, session, audience)
    const token = await exchange(session, await outsideToken(terminal, session), { audiences: [audience] })
    keep(terminal, session.files, audience, token)
    return token
  } catch (error) {
    const refused = error instanceof ApiError && error.exitCode === exitCodes.refused
    if (cached && !refused) return cached.token
    throw error
  }
}

/** Token that another command has stored in the meantime, or a new one. */
async function personToken(terminal: Terminal, session: Session, audience: string): Promise<string> {
  const kept = () => {
    const cached = cachedToken(session, audience)
    return cached && cached.claims.expiry.getTime() - Date.now() > earlyMs ? cached.token : undefined
  }
  const wish = { audiences: [audience] }
  const store = (token: string) => keep(terminal, session.files, audience, token)
  return refreshPerson(session.files, session.api, wish, { kept, keep: store })
}

/** Creates a token with the requested limits. Does not store the token. */
export async function narrowedToken(terminal: Terminal, session: Session, wish: TokenRequest): Promise<string> {
  if (!session.isPerson) return exchange(session, await outsideToken(terminal, session), wish)
  return refreshPerson(session.files, session.api, wish, { kept: () => undefined, keep: () => {} })
}

/** Cached token for an audience. Undefined if the token has expired or belongs to another session. */
export function cachedToken(
  { api, identity, files }: Session,
  audience: string,
): { token: string; claims: TokenClaims } | undefined {
  const token = readToken(files, audience)
  const claims = claimsOf(token ?? '')
  if (token === undefined || !claims || claims.expiry.getTime() <= Date.now()) return undefined
  const own = claims.issuer === api && claims.subject === identity && claims.audience.includes(audience)
  return own ? { token, claims } : undefined
}

/** Token that a command sends to the API: PINFOLD_TOKEN, or else a token of the session. */
export async function callerToken(terminal: Terminal, session: Session): Promise<string> {
  // Secrets that were made from a file or with echo end with a line break.
  const given = terminal.env.PINFOLD_TOKEN?.trim()
  if (!given) return accessToken(terminal, session, session.api)
  checkToken(given, 'PINFOLD_TOKEN')
  return given
}

export function notSignedIn(): CliError {
  const ways = 'a workload needs --identity UID or PINFOLD_IDENTITY, and the operator of the server needs --data DIR'
  return new CliError(exitCodes.refused, `not signed in: run pinfold login; ${ways}`)
}

export function claimsOf(token: string): TokenClaims | undefined {
  try {
    const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
    const { iss, sub, aud, exp } = JSON.parse(text) as Record<string, unknown>
    if (typeof iss !== 'string' || typeof sub !== 'string' || typeof exp !== 'number') return undefined
    const audience = [aud].flat().filter((one) => typeof one === 'string')
    const expiry = new Date(exp * 1000)
    return Number.isNaN(expiry.getTime()) ? undefined : { issuer: iss, subject: sub, audience, expiry }
  } catch {
    return undefined
  }
}

/** Stores a token in the cache. If that fails, the next command is slower, but this command still succeeds. */
function keep(terminal: Terminal, files: UserFiles, audience: string, token: string): void {
  try {
    writeToken(files, audience, token)
  } catch (error) {
    terminal.say(`pinfold: ${plain((error as Error).message)}`)
  }
}
