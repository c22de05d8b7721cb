// Base of commands that call the API: reads the caller's sign-in, calls the API, and prints the answer.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { defaultData } from '#config/basics.ts'
import { codes } from '#lib/errors.ts'
import { jsonText, plain, type Row, table } from '#lib/terminal/plain-text.ts'
import { rootOf } from '#lib/uid.ts'
import { ApiError, send } from './api-client.ts'
import { type ApiReader, listPages, type Query } from './api-reader.ts'
import { CliError, exitCodes, usageError } from './cli-error.ts'
import { type Command, keyOf, type OptionSpec, type Options, type Terminal } from './command.ts'
import { groupOf } from './names.ts'
import { readPreferences } from './preferences.ts'
import { callerToken, claimsOf, type Session, sessionOf, sessionOptions } from './session.ts'
import { unreachableReason } from './unreachable.ts'
import { userFiles } from './user-files.ts'

/** Options that choose the caller of the API, for commands that use `apiReader`. */
export const callerOptions: readonly OptionSpec[] = [
  { flags: '--data <dir>', summary: 'Data folder of a server, to act as its operator (PINFOLD_DATA)' },
  { flags: '--database <url>', summary: 'Database URL of a server, to act as its operator (PINFOLD_DATABASE)' },
  ...sessionOptions,
]

/** Result of a command: `json` for programs, and for users either text or rows below a heading. */
export type Answer = {
  /** Prints the result in the requested format. The other members are not printed then. */
  print?(terminal: Terminal, format: unknown): void
  json?: unknown
  /** Prints the JSON on one line. */
  dense?: true
  text?: string | readonly string[]
  head?: readonly string[]
  rows?: readonly Row[]
  /** Line that is printed after the rows. */
  below?: string
  /** True if the list has more items than the limit. */
  more?: boolean
  /** Prints lines on standard error, after the result. */
  notes?(say: (line: string) => void): void
  /** Exit code of the command. Default: 0. */
  code?: number
}

type ApiCommand = Omit<Command, 'run'> & {
  /** Throws if options are wrong. Called before the sign-in is read and before any request. */
  check?(options: Options): void
  run(api: ApiReader, options: Options, terminal: Terminal): Promise<Answer | undefined>
}

/** Creates a command that calls the API. Adds the options that choose the caller, except those that the command itself has. */
export function apiCommand({ check, run, options: own, ...command }: ApiCommand, caller = callerOptions): Command {
  const formerFlags = [...own, ...(command.arguments ?? [])].flatMap(({ former = [] }) => former)
  const taken = new Set([...own.map(({ flags }) => flags), ...formerFlags].map(keyOf))
  return {
    ...command,
    options: [...own, ...caller.filter(({ flags }) => !taken.has(keyOf(flags)))],
    async run(terminal, options) {
      check?.(options)
      const ofCaller = Object.entries(options).filter(([name]) => !taken.has(name))
      const api = await apiReader(terminal, Object.fromEntries(ofCaller))
      return printAnswer(terminal, options, await run(api, options, terminal))
    },
  }
}

/** Prints the answer of a command. Returns the exit code. */
export function printAnswer(
  terminal: Terminal,
  { output }: Options,
  { print: printAll, json, dense, text, head, rows = [], below, more = false, notes, code = exitCodes.ok }: Answer = {},
): number {
  const { print, say } = terminal
  if (printAll) printAll(terminal, output)
  else if (output === 'json' && json !== undefined) print(jsonText(json, dense ? undefined : 2))
  else if (text !== undefined) for (const line of [text].flat()) print(plain(line))
  else {
    for (const line of table(head ? [head, ...rows] : rows)) print(line)
    if (below !== undefined) print(plain(below))
  }
  if (more) say('pinfold: the list has more items; a larger --limit shows them')
  notes?.(say)
  return code
}

/**
 * Acts as the operator if an option names a data folder or a database. Otherwise acts with PINFOLD_TOKEN, or as the user who has
 * signed in. Without these, acts as the operator if the environment or the current folder has a data folder or a database. The
 * operator needs no sign-in.
 */
export async function apiReader(terminal: Terminal, options: Options): Promise<ApiReader> {
  if (actsAsOperator(terminal, options)) return operatorReader(terminal, options)
  const session = sessionOf(terminal, options)
  const token = await callerToken(terminal, session)
  return readerOf({ session, token, origin: session.api, operator: false, ownMachine: false }, (error) => {
    return withNextStep(error, terminal)
  })
}

export function actsAsOperator({ env }: Terminal, options: Options): boolean {
  if (options.data !== undefined || options.database !== undefined) return true
  const asked = options.api ?? options.identity ?? (env.PINFOLD_TOKEN || env.PINFOLD_IDENTITY)
  if (asked !== undefined && asked !== '') return false
  const session = sessionOf({ env } as Terminal, options)
  if (session.identity !== '') return false
  if (env.PINFOLD_DATABASE) return true
  if (env.PINFOLD_API) return false
  if (!env.PINFOLD_DATA && readPreferences(session.files)['platform.api'] !== undefined) return false
  return existsSync(join(env.PINFOLD_DATA || defaultData, 'pinfold.db'))
}

async function operatorReader(terminal: Terminal, options: Options): Promise<ApiReader> {
  const { operatorToken } = await import('./operator.ts')
  const { url, origin, ownMachine, token } = await operatorToken(terminal, options)
  const session: Session = {
    api: url,
    identity: '',
    identityToken: '',
    isPerson: false,
    files: userFiles(terminal.env),
  }
  const shared = Boolean(options.database ?? terminal.env.PINFOLD_DATABASE)
  const folder = String(options.data ?? terminal.env.PINFOLD_DATA ?? defaultData)
  return readerOf({ session, token, origin, operator: true, ownMachine }, (error) => {
    return shared ? error : explained(error, folder, origin)
  })
}

/** Adds the next step if the server does not accept the token. */
function withNextStep(error: ApiError, { env }: Terminal): ApiError {
  const say = (next: string) => new ApiError(error.code, `${error.message}\n${next}`, error.cause, error.violations)
  if (error.code !== codes.UNAUTHENTICATED.number) return error
  const again = env.PINFOLD_TOKEN ? 'set PINFOLD_TOKEN to a token of this server' : 'run pinfold login again'
  return say(`${again}, and check that --api or PINFOLD_API names the right server`)
}

/** Explains an error if the server of the data folder does not run, or if another server answers at its address. */
function explained(error: ApiError, folder: string, origin: string): CliError {
  if (error.code === codes.UNAVAILABLE.number && error.cause) {
    const start = `start it with pinfold serve --data ${folder}, or give the data folder of the running server with --data`
    const message = `no server runs on the data folder ${folder}: ${origin} cannot be reached: ${unreachableReason(error.cause).says}`
    return new CliError(exitCodes.unavailable, `${message}\n${start}`, error)
  }
  if (error.code !== codes.UNAUTHENTICATED.number) return error
  const message = `the server at ${origin} refused the operator's token: it does not use the data folder ${folder}`
  return new CliError(exitCodes.refused, `${message}\ngive the data folder of that server with --data`, error)
}

function readerOf(
  { ownMachine, ...parts }: Pick<ApiReader, 'session' | 'token' | 'origin' | 'operator'> & { ownMachine: boolean },
  explain: (error: ApiError) => CliError,
): ApiReader {
  const { token, origin } = parts
  const call: ApiReader['call'] = async (method, path, body, headers) => {
    try {
      return await send(method, new URL(path, origin), token, { body, headers, ownMachine })
    } catch (error) {
      throw error instanceof ApiError ? explain(error) : error
    }
  }
  return {
    ...parts,
    call,
    list: <T>(path: string, member: string, query: Query, limit = Number.POSITIVE_INFINITY) =>
      listPages<T>((page) => call('GET', page), { path, member, query, limit }),
  }
}

/** Option for the group that `parentOf` reads. */
export const inOption: OptionSpec = {
  flags: '--in <group>',
  summary: 'Organization or folder: ORG, ORG/FOLDER or a uid; default: your own organization',
  former: ['--parent <group>'],
  default: 'parent',
}

/**
 * Uid of the group in `--in`: a uid, or the names of an organization and folders. Without `--in`, the caller's own organization.
 */
export async function parentOf(api: ApiReader, given: unknown): Promise<string> {
  if (given !== undefined) {
    return groupOf(api, String(given)).catch((error: Error) => {
      const missing = error instanceof CliError && error.exitCode === exitCodes.failed && !(error instanceof ApiError)
      throw missing ? usageError(`--in: ${error.message}`, error) : error
    })
  }
  const subject = claimsOf(api.token)?.subject ?? ''
  if (subject.includes('/')) return rootOf(subject)
  throw usageError('--in is missing: name an organization or a folder, since your identity belongs to none')
}
