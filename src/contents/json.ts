// Parses JSON from untrusted sources within limits.
import { Unreadable } from './packages.ts'

export type Json = Record<string, unknown>

const [brace, bracket, comma] = ['{', '[', ','].map((mark) => mark.charCodeAt(0))

/** Parses a JSON document. Throws Unreadable if the text is not JSON or has more than `most` values. */
export function parseJson(bytes: Uint8Array, most: number, what: string): Json {
  let values = 0
  for (const byte of bytes) if (byte === comma || byte === brace || byte === bracket) values++
  if (values > most) throw new Unreadable('LIMIT_EXCEEDED', `the ${what} has more than ${most} values`)
  try {
    return asObject(JSON.parse(new TextDecoder().decode(bytes)))
  } catch {
    throw new Unreadable('DAMAGED', `the ${what} is not valid JSON`)
  }
}

export const asObject = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
export const objectsIn = (value: unknown): Json[] => (Array.isArray(value) ? value.map(asObject) : [])
