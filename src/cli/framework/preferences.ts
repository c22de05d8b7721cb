// Preferences of a user for commands, in a file. Options and environment variables have priority over them.

import { baseUrl, ConfigError } from '#config/basics.ts'
import { CliError, exitCodes } from './cli-error.ts'
import { parseUserJson, readUserFile, type UserFiles, userFiles, writeUserFile } from './user-files.ts'

const formats = ['table', 'wide', 'json', 'id', 'terse', 'csv', 'markdown', 'tree', 'env', 'none']

type Key = { summary: string; fallback: string; env?: string; parse(value: string, name: string): string }

/** Definitions of the supported preferences by key: help text, default value, environment variable and parser. */
export const preferenceKeys: Readonly<Record<string, Key>> = {
  'platform.api': {
    summary: 'URL of the server that commands call',
    fallback: '',
    env: 'PINFOLD_API',
    parse: (value, name) => {
      if (value === '') throw new ConfigError(`${name} must be an http or https URL without a path`)
      return baseUrl(value, name)
    },
  },
  'default.group': {
    summary: 'Organization or folder of a new resource if --in is not given: ORG, ORG/FOLDER or a uid',
    fallback: '',
    parse: (value, name) => {
      if (/^[a-z0-9 ._/-]+$/.test(value)) return value
      throw new ConfigError(`${name} must be an organization or a folder, such as acme/team`)
    },
  },
  'output.format': {
    summary: 'Output format if -o is not given, for commands that have this format',
    fallback: 'table',
    parse: (value, name) => {
      if (formats.includes(value)) return value
      throw new ConfigError(`${name} must be one of: ${formats.join(', ')}`)
    },
  },
}

export type Preferences = Readonly<Record<string, string>>

/** Reads the preferences file. Adds problems to `problems`; without this list, throws a CliError with a line for each problem. */
export function readPreferences(files: UserFiles, problems?: string[]): Preferences {
  const text = readUserFile(files.config)
  if (text === undefined) return {}
  const found: Record<string, string> = {}
  const wrong: string[] = []
  const read = objectOf(text)
  if (read === undefined) wrong.push('the content must be a JSON object with strings as values')
  for (const [key, value] of Object.entries(read ?? {})) {
    try {
      found[key] = checked(key, value)
    } catch (error) {
      wrong.push((error as Error).message)
    }
  }
  if (wrong.length === 0) return found
  if (problems) {
    problems.push(...wrong)
    return found
  }
  const lines = wrong.map((line) => `${files.config}: ${line}`)
  throw new CliError(
    exitCodes.config,
    [...lines, 'to correct it: pinfold config edit; to remove it: pinfold config reset'].join('\n'),
  )
}

/** Preferences that set options, by the camelCase names of the options. */
export function preferredOptions(env: Record<string, string | undefined>): Record<string, string> {
  const { 'default.group': parent, 'output.format': output } = readPreferences(userFiles(env))
  return { ...(parent !== undefined && { parent }), ...(output !== undefined && { output }) }
}

export function writePreferences(files: UserFiles, preferences: Preferences): void {
  const sorted = Object.fromEntries(Object.entries(preferences).sort(([a], [b]) => (a < b ? -1 : 1)))
  writeUserFile(files.config, `${JSON.stringify(sorted, undefined, 2)}\n`)
}

/** Value in the form that the file stores. Throws a ConfigError if the key is unknown or the value is invalid. */
export function checked(key: string, value: unknown): string {
  const known = Object.hasOwn(preferenceKeys, key) ? preferenceKeys[key] : undefined
  if (!known) throw new ConfigError(`${key} is not a key; the keys are ${Object.keys(preferenceKeys).join(', ')}`)
  return known.parse(typeof value === 'string' ? value : '', key)
}

function objectOf(text: string): object | undefined {
  try {
    const read = parseUserJson(text)
    return typeof read === 'object' && read !== null && !Array.isArray(read) ? read : undefined
  } catch {
    return undefined
  }
}
