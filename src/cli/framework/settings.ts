// Options of commands that are settings too.
import type { Setting } from '#config/basics.ts'
import { type Config, readConfig, settings } from '#config.ts'
import type { Options } from './command.ts'

const placeholders: Record<string, string> = {
  listen: 'host:port',
  url: 'url',
  data: 'dir',
  database: 'url',
  blobs: 'dir',
  tlsCert: 'file',
  tlsKey: 'file',
}

/** The options of the given settings, as a command declares them. */
export function settingOptions(...keys: (keyof typeof settings)[]): { flags: string; summary: string }[] {
  return keys.map((key) => {
    const { flag, env } = settings[key]
    return { flags: `${flag} <${placeholders[key] ?? 'value'}>`, summary: `${explanation(settings[key])} (${env})` }
  })
}

/** What a setting does, with its default, for a terminal. */
export function explanation({ doc, default: value, defaultMeans }: Setting<unknown>): string {
  const fallback = value === '' ? defaultMeans : value
  return withoutMarks(fallback === undefined ? doc : `${doc} Default: ${fallback}.`)
}

/** Text of a documentation page for a terminal: values are quoted, and a link becomes its words, followed by the page. */
export function withoutMarks(doc: string): string {
  return doc
    .replace(/`([a-z0-9]+)`/g, '"$1"')
    .replaceAll('`', '')
    .replace(/\[([^\]]+)\]\(([^)#]+)[^)]*\)/g, '$1 (docs/$2)')
}

/** Flags win over the environment, which wins over the defaults. Throws ConfigError. */
export function configOf(env: Record<string, string | undefined>, options: Options): Config {
  const given = Object.entries(options).filter(([key, value]) => key in settings && typeof value === 'string')
  return readConfig(env, Object.fromEntries(given) as Record<string, string>)
}
