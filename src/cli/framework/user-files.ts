// Files of a user. The configuration folder has one profile, the user's sessions and the preferences. The cache has a token for
// each audience.
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { CliError, exitCodes, failure, usageError } from './cli-error.ts'

/** Sign-in of a workload: the server, the identity, and the location of the outside token. */
export type Profile = {
  api: string
  identity: string
  /** Absolute path of the token file, or `-` for standard input. Empty if the platform provides the token. */
  identityToken: string
}

/** Session of a user at one server. */
export type Person = {
  api: string
  identity: string
  /** Empty if the server issued no refresh token. The session then ends when its access tokens expire. */
  refreshToken: string
}

export type UserFiles = { profile: string; people: string; config: string; tokens: string }

/** Folder of the base directory specification of freedesktop.org, which requires that relative paths are ignored. */
export function userFiles(env: Record<string, string | undefined>): UserFiles {
  const base = (variable: string, fallback: string) => {
    const given = env[variable]
    return given && isAbsolute(given) ? given : join(env.HOME || homedir(), fallback)
  }
  return {
    profile: join(base('XDG_CONFIG_HOME', '.config'), 'pinfold', 'profile.json'),
    people: join(base('XDG_CONFIG_HOME', '.config'), 'pinfold', 'sessions'),
    config: join(base('XDG_CONFIG_HOME', '.config'), 'pinfold', 'config.json'),
    tokens: join(base('XDG_CACHE_HOME', '.cache'), 'pinfold'),
  }
}

export function readProfile({ profile }: UserFiles): Profile | undefined {
  const text = readUserFile(profile)
  if (text === undefined) return undefined
  try {
    const { api, identity, identityToken } = JSON.parse(text) as Record<string, unknown>
    if (typeof api === 'string' && typeof identity === 'string' && typeof identityToken === 'string') {
      return { api, identity, identityToken }
    }
  } catch {
    // The code below throws the error.
  }
  throw new CliError(
    exitCodes.config,
    `${profile} is not a valid profile; remove it with pinfold logout, then run pinfold login`,
  )
}

export function writeProfile({ profile }: UserFiles, content: Profile): void {
  writeUserFile(profile, `${JSON.stringify(content, undefined, 2)}\n`)
}

/** Session of the user at this server. Undefined if no user is signed in, or if the file cannot be read. */
export function readPerson(files: UserFiles, server: string): Person | undefined {
  try {
    const { api, identity, refreshToken } = JSON.parse(readUserFile(personFile(files, server)) ?? '') as Record<
      string,
      unknown
    >
    const isWhole = api === server && typeof identity === 'string' && typeof refreshToken === 'string'
    return isWhole ? { api: server, identity, refreshToken } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

export function writePerson(files: UserFiles, person: Person): void {
  writeUserFile(personFile(files, person.api), `${JSON.stringify(person, undefined, 2)}\n`)
}

export function removePerson(files: UserFiles, api: string): void {
  removeUserFile(personFile(files, api))
}

/** Path of the lock for changes of the session. Creates its folder. */
export function lockOfPerson(files: UserFiles, api: string): string {
  makePrivateFolder(files.people)
  return `${personFile(files, api)}.lock`
}

function personFile({ people }: UserFiles, api: string): string {
  return join(people, `${encodeURIComponent(api)}.json`)
}

export function readToken(files: UserFiles, audience: string): string | undefined {
  return readUserFile(tokenFile(files, audience))?.trim()
}

export function writeToken(files: UserFiles, audience: string, token: string): void {
  const file = tokenFile(files, audience)
  makePrivateFolder(files.tokens)
  writeUserFile(file, `${token}\n`)
}

/** Deletes the stored token for one audience. */
export function removeToken(files: UserFiles, audience: string): void {
  removeUserFile(dirname(tokenFile(files, audience)))
  removeIfEmpty(files.tokens)
}

/** Deletes all stored tokens. Keeps the profile. */
export function removeTokens({ tokens }: UserFiles): void {
  removeUserFile(tokens)
}

export function removeProfile({ profile, people }: UserFiles): void {
  removeUserFile(profile)
  removeIfEmpty(people)
  removeIfEmpty(dirname(profile))
}

/**
 * Folder for an audience, with `-` instead of slashes. Two audiences may share a folder, so the audience is read from the token
 * itself.
 */
function tokenFile({ tokens }: UserFiles, audience: string): string {
  const folder = audience.replaceAll('/', '-')
  if (!/^(?!\.{1,2}$)[\x21-\x7e]{1,255}$/.test(folder)) {
    throw usageError('an audience must be the URL of an API or the host of a registry')
  }
  return join(tokens, folder, 'oidc-token')
}

/** Content of a file; undefined if it does not exist. */
export function readUserFile(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw problemWith(file, 'read', error)
  }
}

/** Secret in the file of an option, without the line break at its end. */
export function secretIn(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw usageError(`${flag}: ${file} cannot be read; check its path and permissions`)
  }
}

/** Writes a file that only this user can read. A concurrent reader gets either the old or the new content. */
export function writeUserFile(file: string, content: string): void {
  const fresh = `${file}.${randomUUID()}`
  try {
    makePrivateFolder(dirname(file))
    writeFileSync(fresh, content, { mode: 0o600, flag: 'wx', flush: true })
    keepOwner(file, fresh)
    renameSync(fresh, file)
  } catch (error) {
    rmSync(fresh, { force: true })
    throw problemWith(file, 'written', error)
  }
}

/** Gives `fresh` the owner of the file that it replaces. So sudo does not lock users out of their own files. */
export function keepOwner(file: string, fresh: string): void {
  const found = process.getuid?.() === 0 ? statSync(file, { throwIfNoEntry: false }) : undefined
  if (found) chownSync(fresh, found.uid, found.gid)
}

function makePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    // The folder may have existed with permissions for other users.
    chmodSync(folder, 0o700)
  } catch (error) {
    throw problemWith(folder, 'created', error)
  }
}

/** Removes a file or a folder, if it exists. */
export function removeUserFile(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    throw problemWith(path, 'removed', error)
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // The folder is not empty, because another program has a file in it.
  }
}

function problemWith(path: string, what: string, error: unknown): CliError {
  if (error instanceof CliError) return error
  const { code, message } = error as NodeJS.ErrnoException
  return failure(`${path} cannot be ${what}: ${code ?? message}`, error)
}

/** Text without the byte order mark, which editors and PowerShell on Windows write before UTF-8. */
export function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, '')
}

/** Value of the JSON text of a file that a user may have edited. Throws SyntaxError. */
export function parseUserJson(text: string): unknown {
  return JSON.parse(withoutMark(text))
}
