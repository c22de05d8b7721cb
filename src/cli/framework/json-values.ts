// Readers of values in JSON from other programs. Errors name the path of a wrong value.
import { parseTimestamp } from '#lib/timestamp.ts'

/** Error for one wrong value. The message has the expected form, and no part of the value. */
export class WrongValue extends Error {
  override name = 'WrongValue'
  readonly path: string
  constructor(path: string, description: string) {
    super(description)
    this.path = path
  }
}

export type Json = Readonly<Record<string, unknown>>

export function objectAt(value: unknown, path: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new WrongValue(path, 'must be an object')
  }
  return value as Json
}

export function listAt(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new WrongValue(path, 'must be a list')
  return value
}

export function textAt(value: unknown, path: string): string {
  if (typeof value !== 'string' || value === '') throw new WrongValue(path, 'must be a string that is not empty')
  return value
}

/** Reads a whole number. Returns 0 for a missing value and for null. */
export function sizeAt(value: unknown, path: string): number {
  if (value === undefined || value === null) return 0
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new WrongValue(path, 'must be a whole number')
  return value as number
}

/** Reads an RFC 3339 time. Returns empty text for a missing value and for null. */
export function timeAt(value: unknown, path: string): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string' || !parseTimestamp(value))
    throw new WrongValue(path, 'must be a time in the format of RFC 3339')
  return value
}
