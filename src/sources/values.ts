// Reads values from documents of data sources. An error names the path of the invalid value. An invalid value excludes only its
// record.

/** Error of one record. The message names the field, but does not contain its value. */
export class WrongRecord extends Error {
  override name = 'WrongRecord'
}

export type Json = Readonly<Record<string, unknown>>

export function objectAt(value: unknown, path: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new WrongRecord(`${path} must be an object`)
  return value as Json
}

/** Reads a list. A missing list and null are empty. */
export function listAt(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new WrongRecord(`${path} must be a list`)
  return value
}

/** Reads a text. A missing text and null are empty. */
export function textAt(value: unknown, path: string): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw new WrongRecord(`${path} must be a string`)
  return value.replaceAll('\0', '')
}

export function textsAt(value: unknown, path: string): string[] {
  return listAt(value, path).map((one, i) => textAt(one, `${path}[${i}]`))
}

export function requiredAt(value: unknown, path: string): string {
  const text = textAt(value, path)
  if (text === '') throw new WrongRecord(`${path} is required`)
  return text
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The message of the JSON parser is not used, because it contains text of the document.
    throw new WrongRecord('the document is not valid JSON')
  }
}

/** Reads a time, as ISO 8601 with milliseconds. Empty if the time is missing or a placeholder. */
export function timeAt(value: unknown, path: string): string {
  const text = textAt(value, path)
  if (text === '' || text.startsWith('0001-01-01')) return ''
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new WrongRecord(`${path} must be a valid time`)
  return new Date(time).toISOString()
}

/** First line of a text, cut to the maximum length of a summary. */
export function lineOf(text: string): string {
  const line = text.trim().split(/\r?\n/, 1)[0]!.trim()
  return line.length <= 1000 ? line : `${line.slice(0, 999)}…`
}
