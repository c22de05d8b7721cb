// Commands for the user's defaults.

import { jsonText, table } from '#lib/terminal/plain-text.ts'
import { exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type Command, type Commands, outputOption, type Terminal } from '../framework/command.ts'
import { confirm, yesOption } from '../framework/outputs.ts'
import {
  checked,
  type Preferences,
  preferenceKeys,
  readPreferences,
  writePreferences,
} from '../framework/preferences.ts'
import { removeUserFile, userFiles } from '../framework/user-files.ts'

const keyArgument = { name: '<key>', summary: `Key: ${Object.keys(preferenceKeys).join(', ')}` }

const details = `Keys:
${table(Object.entries(preferenceKeys).map(([key, { summary }]) => [`  ${key}`, summary])).join('\n')}
The value of an option is used first, then the environment, then these defaults, then the server of your last sign-in.`

type InForce = { key: string; value: string; from: string }

/** Values that commands use in this environment, each with its source. */
function inForce({ env }: Terminal, kept: Preferences): InForce[] {
  return Object.entries(preferenceKeys).map(([key, { fallback, env: variable }]) => {
    const given = variable === undefined ? undefined : env[variable]
    if (given) return { key, value: given, from: variable! }
    const own = kept[key]
    return own === undefined ? { key, value: fallback, from: 'default' } : { key, value: own, from: 'file' }
  })
}

const view: Command = {
  details,
  options: [{ flags: '--diff', summary: 'Show only values that differ from the built-in default' }, outputOption],
  async run(terminal, options) {
    const files = userFiles(terminal.env)
    const all = inForce(terminal, readPreferences(files)).filter(({ from }) => !options.diff || from !== 'default')
    if (options.output === 'json') {
      const items = all.map(({ key, value, from }) => ({ key, value, from }))
      terminal.print(jsonText({ file: files.config, items }, 2))
      return exitCodes.ok
    }
    for (const line of table(all.map(({ key, value, from }) => [key, value || '-', from]))) terminal.print(line)
    return exitCodes.ok
  },
}

const set: Command = {
  details,
  arguments: [keyArgument, { name: '<value>', summary: 'New value' }],
  options: [],
  async run(terminal, options) {
    const files = userFiles(terminal.env)
    const key = String(options.key)
    writePreferences(files, { ...readPreferences(files), [key]: known(key, options.value) })
    return exitCodes.ok
  },
}

/** Checks a key and its value, and returns the value. Throws a usage error if one is invalid. */
function known(key: string, value: unknown): string {
  try {
    return checked(key, value)
  } catch (error) {
    throw usageError((error as Error).message, error)
  }
}

const unset: Command = {
  arguments: [keyArgument],
  options: [],
  async run(terminal, options) {
    const files = userFiles(terminal.env)
    const key = String(options.key)
    if (!Object.hasOwn(preferenceKeys, key)) known(key, '')
    const { [key]: _, ...rest } = readPreferences(files)
    writePreferences(files, rest)
    return exitCodes.ok
  },
}

const save: Command = {
  options: [],
  async run(terminal) {
    const files = userFiles(terminal.env)
    const all = inForce(terminal, readPreferences(files)).filter(({ from }) => from !== 'default')
    writePreferences(files, Object.fromEntries(all.map(({ key, value }) => [key, known(key, value)])))
    return exitCodes.ok
  },
}

const reset: Command = {
  options: [yesOption],
  async run(terminal, options) {
    const { config } = userFiles(terminal.env)
    await confirm(terminal, options.yes, `remove ${config}`)
    removeUserFile(config)
    return exitCodes.ok
  },
}

const validate: Command = {
  options: [],
  async run(terminal) {
    readPreferences(userFiles(terminal.env))
    return exitCodes.ok
  },
}

const edit: Command = {
  options: [],
  async run(terminal) {
    const files = userFiles(terminal.env)
    const editor = terminal.env.VISUAL || terminal.env.EDITOR
    if (!editor) throw usageError(`no editor was started: set VISUAL or EDITOR, or edit the file ${files.config}`)
    const problems: string[] = []
    // The editor needs an existing file. The content may be invalid, since the user may want to correct it.
    if (Object.keys(readPreferences(files, problems)).length === 0 && problems.length === 0) writePreferences(files, {})
    const { spawnSync } = await import('node:child_process')
    // As for git and crontab, EDITOR is a shell command that may have options.
    const { status } = spawnSync('sh', ['-c', `${editor} "$1"`, 'sh', files.config], { stdio: 'inherit' })
    if (status !== 0)
      throw failure(
        `the editor ${editor} failed with ${status === null ? 'a signal' : `exit code ${status}`}; ${files.config} was not checked`,
      )
    readPreferences(files)
    return exitCodes.ok
  },
}

export const config: Commands = { view, set, unset, save, edit, validate, reset }
