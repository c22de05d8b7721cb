// Types of settings, and parsers without further imports. Commands load this file without the table of all settings. Each parser
// takes a text and the setting's name, and throws a ConfigError.

/** Folder of the embedded database and the master key, unless a setting names another one. */
export const defaultData = 'data'

export type Setting<T> = {
  env: string
  /** Former name of the variable. It still works, with a warning. */
  formerly?: string
  flag?: string
  parse: (text: string, name: string) => T
  default: string
  /** Effect of an empty default, for the documentation. */
  defaultMeans?: string
  /** Purpose of the setting in one sentence, with the unit of its value. */
  doc: string
  /** Further sentences for the documentation. */
  note?: string
}

/** Settings of one topic, with a heading and a sentence that applies to all of them. */
export type SettingGroup = {
  title: string
  about?: string
  settings: Readonly<Record<string, Setting<unknown>>>
}

export function setting<T>(of: Setting<T>): Setting<T> {
  return of
}

/** Error for invalid settings; the message lists all of them. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** Quotes a value for a message. Never used for secrets. */
const quoted = (value: string): string => JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)

export const folder = (value: string, name: string): string => {
  if (value === '') throw new ConfigError(`${name} must be the path of a folder`)
  return value
}
export const onOff = (value: string, name: string): boolean => {
  if (value === 'on' || value === 'off') return value === 'on'
  throw new ConfigError(`${name} must be on or off, not ${quoted(value)}`)
}
export const oneOf =
  <T extends string>(...words: T[]) =>
  (value: string, name: string): T => {
    const found = words.find((word) => word === value)
    if (found === undefined) {
      throw new ConfigError(`${name} must be one of: ${words.join(', ')}; it is ${quoted(value)}`)
    }
    return found
  }
export const whole =
  (min: number, max: number) =>
  (value: string, name: string): number => {
    const number = Number(value)
    if (!Number.isInteger(number) || number < min || number > max) {
      throw new ConfigError(`${name} must be a whole number from ${min} to ${max}, not ${quoted(value)}`)
    }
    return number
  }
export const address = (value: string, name: string): { host: string; port: number } => {
  const match = /^(?<host>\[[0-9a-fA-F:.]+\]|[^:[\]]+):(?<port>\d{1,5})$/.exec(value)
  const port = Number(match?.groups?.port)
  if (!match?.groups || port > 65_535) {
    throw new ConfigError(`${name} must be HOST:PORT, such as 0.0.0.0:8080, not ${quoted(value)}`)
  }
  return { host: match.groups.host!.replace(/^\[|\]$/g, ''), port }
}
export const optionalAddress = (value: string, name: string): { host: string; port: number } | undefined =>
  value === '' ? undefined : address(value, name)
/** Secret that is safe in an HTTP header and has at least 16 characters; may be empty. */
export const secret = (value: string, name: string): string => {
  if (value === '' || /^[\w.~+/=-]{16,256}$/.test(value)) return value
  throw new ConfigError(`${name} must be 16 to 256 letters, digits or characters of -._~+/=`)
}
/** Contact address (RFC 9116, 2.5.3); may be empty. */
export const contact = (value: string, name: string): string => {
  if (value === '' || (/^(?:mailto:[^@\s]+@|https:\/\/)[\x21-\x7e]+$/.test(value) && URL.canParse(value))) return value
  throw new ConfigError(`${name} must be a mailto: or https: URL, such as mailto:security@example.com`)
}
/** The origin of an http or https URL, or empty text for empty text. */
export const baseUrl = (value: string, name: string): string => {
  if (value === '') return ''
  const url = URL.parse(value)
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new ConfigError(`${name} must be an http or https URL without a path, such as https://registry.example.com`)
  }
  return url.origin
}
