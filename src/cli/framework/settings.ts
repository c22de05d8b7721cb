// Command options that are also settings of the server.
import type { Setting } from '#config/basics.ts'
import { type Config, readConfig, settings } from '#config.ts'
import type { Options, Terminal } from './command.ts'

const placeholders: Record<string, string> = {
  listen: 'host:port',
  url: 'url',
  data: 'dir',
  database: 'url',
  blobs: 'dir',
  tlsCert: 'file',
  tlsKey: 'file',
  logLevel: 'level',
}

/** Options of a command for the given settings. */
export function settingOptions(...keys: (keyof typeof settings)[]): { flags: string; summary: string }[] {
  return keys.map((key) => {
    const { flag, env } = settings[key]
    return { flags: `${flag} <${placeholders[key] ?? 'value'}>`, summary: `${explanation(settings[key])} (${env})` }
  })
}

/** Purpose of a setting and its default, as text for a terminal. */
export function explanation({ doc, default: value, defaultMeans }: Setting<unknown>): string {
  const fallback = value === '' ? defaultMeans : value
  return withoutMarks(fallback === undefined ? doc : `${doc} Default: ${fallback}.`)
}

/** Documentation text for a terminal: values are in quotes, and a link is shown as its text and the page. */
export function withoutMarks(doc: string): string {
  return doc
    .replace(/`([a-z0-9]+)`/g, '"$1"')
    .replaceAll('`', '')
    .replace(/\[([^\]]+)\]\(([^)#]+)[^)]*\)/g, '$1 (docs/$2)')
}

/** Settings of a command, as `quietConfigOf` reads them. Warns on standard error if settings have their former names. */
export function configOf(terminal: Pick<Terminal, 'env' | 'say'>, options: Options): Config {
  const config = quietConfigOf(terminal.env, options)
  for (const { former, name } of config.formerNames) {
    terminal.say(`pinfold: ${former} is deprecated; use ${name} instead`)
  }
  return config
}

/** Settings of a command. Options have priority over environment variables, and these over the defaults. Throws ConfigError. */
export function quietConfigOf(env: Terminal['env'], options: Options): Config {
  const given = Object.entries(options).filter(([key, value]) => key in settings && typeof value === 'string')
  return readConfig(env, Object.fromEntries(given) as Record<string, string>)
}
