// Options of commands that are settings too.
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
    const { flag, doc, env } = settings[key]
    return { flags: `${flag} <${placeholders[key] ?? 'value'}>`, summary: `${withoutMarks(doc)} (${env})` }
  })
}

/** Text of a documentation page for a terminal: a link becomes its words, followed by the page. */
export function withoutMarks(doc: string): string {
  return doc.replaceAll('`', '').replace(/\[([^\]]+)\]\(([^)#]+)[^)]*\)/g, '$1 (docs/$2)')
}

/** Flags win over the environment, which wins over the defaults. Throws ConfigError. */
export function configOf(env: Record<string, string | undefined>, options: Options): Config {
  const given = Object.entries(options).filter(([key, value]) => key in settings && typeof value === 'string')
  return readConfig(env, Object.fromEntries(given) as Record<string, string>)
}
