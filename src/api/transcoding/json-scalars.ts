// Reads JSON values that are not objects, by the rules of proto-JSON. Query parameters follow the same rules.
import { create, type DescEnum, type DescMessage, hasOption, type Message, ScalarType } from '@bufbuild/protobuf'
import { DurationSchema, FieldMaskSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { type AppError, invalid, noKnownValue } from '#lib/errors.ts'
import { snakeCase } from '#lib/fields.ts'
import { parseTimestamp } from '#lib/timestamp.ts'
import { optionOf } from '../option-of.ts'
import { maxPathLength } from './message-fields.ts'

type IntegerRules = { min: bigint; max: bigint; big: boolean }

const int32 = { min: -(2n ** 31n), max: 2n ** 31n - 1n, big: false }
const uint32 = { min: 0n, max: 2n ** 32n - 1n, big: false }
const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n, big: true }
const uint64 = { min: 0n, max: 2n ** 64n - 1n, big: true }
const integers = new Map<ScalarType, IntegerRules>([
  [ScalarType.INT32, int32],
  [ScalarType.SINT32, int32],
  [ScalarType.SFIXED32, int32],
  [ScalarType.UINT32, uint32],
  [ScalarType.FIXED32, uint32],
  [ScalarType.INT64, int64],
  [ScalarType.SINT64, int64],
  [ScalarType.SFIXED64, int64],
  [ScalarType.UINT64, uint64],
  [ScalarType.FIXED64, uint64],
])

function invalidField(field: string, description: string): AppError {
  return invalid({ field, description })
}

/** Reads a scalar. `field` is its path in errors. Single-precision numbers are not supported, since the contract has none. */
export function readScalar(type: ScalarType, json: unknown, field: string): unknown {
  const integer = integers.get(type)
  if (integer) return readInteger(integer, json, field)
  if (type === ScalarType.STRING) return readString(json, field)
  if (type === ScalarType.BYTES) return readBytes(json, field)
  if (type === ScalarType.DOUBLE) return readDouble(json, field)
  if (type !== ScalarType.BOOL) throw invalidField(field, 'cannot be set in JSON')
  if (typeof json !== 'boolean') throw invalidField(field, 'must be true or false')
  return json
}

function readString(json: unknown, field: string): string {
  if (typeof json !== 'string') throw invalidField(field, 'must be a string')
  if (json.includes('\0')) throw invalidField(field, 'must not contain a NUL character')
  if (!json.isWellFormed()) throw invalidField(field, 'must be valid Unicode (it has an unpaired surrogate)')
  return json
}

function readInteger(rules: IntegerRules, json: unknown, field: string): bigint | number {
  const decimal = typeof json === 'string' && json.length <= 20 && /^-?(?:0|[1-9]\d*)$/.test(json)
  if (!decimal && !Number.isInteger(json)) throw invalidField(field, 'must be an integer')
  // JSON.parse has already rounded a larger number, so clients must send it as a string.
  if (!decimal && rules.big && !Number.isSafeInteger(json))
    throw invalidField(field, 'must be sent as a string, because JSON numbers lose digits above 2^53')
  const value = BigInt(json as string | number)
  if (value < rules.min || value > rules.max) throw invalidField(field, `must be between ${rules.min} and ${rules.max}`)
  return rules.big ? value : Number(value)
}

/** Reads a finite number. Infinity and NaN are refused. */
function readDouble(json: unknown, field: string): number {
  const decimal =
    typeof json === 'string' && json.length <= 32 && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(json)
  const value = decimal ? Number(json) : json
  if (!Number.isFinite(value)) throw invalidField(field, 'must be a number')
  return value as number
}

function readBytes(json: unknown, field: string): Uint8Array {
  const digits = typeof json === 'string' ? /^[A-Za-z0-9+/_-]*/.exec(json)![0].length : 0
  const padding = typeof json === 'string' ? json.slice(digits) : 'none'
  const padded = padding !== ''
  const whole = padded ? (digits + padding.length) % 4 === 0 : digits % 4 !== 1
  if (typeof json !== 'string' || !whole || (padded && padding !== '=' && padding !== '==')) {
    throw invalidField(field, 'must be base64')
  }
  return Uint8Array.from(Buffer.from(json, 'base64'))
}

const enumNames = new WeakMap<DescEnum, ReadonlyMap<string, number>>()

/** Reads an enum value, by its name or number. Capabilities may also have their dotted names, such as `repo.list`. */
export function readEnum(desc: DescEnum, json: unknown, field: string): number {
  let names = enumNames.get(desc)
  if (!names) {
    const dotted = desc.values.filter((value) => hasOption(value, capability))
    names = new Map([
      ...desc.values.map((value) => [value.name, value.number] as const),
      ...dotted.map((value) => [optionOf(value, capability).name, value.number] as const),
    ])
    enumNames.set(desc, names)
  }
  const known = typeof json === 'number' && desc.value[json] !== undefined
  const number = known ? json : typeof json === 'string' ? names.get(json) : undefined
  if (number === undefined) throw invalidField(field, noKnownValue(desc))
  return number
}

/** Reads a map key, which is a string in JSON for all types. Only its canonical spelling is accepted. */
export function readMapKey(type: ScalarType, key: string, field: string): string {
  if (type === ScalarType.STRING) return readString(key, field)
  if (type === ScalarType.BOOL) {
    if (key !== 'true' && key !== 'false') throw invalidField(field, 'must have the key true or false')
    return key
  }
  if (String(readScalar(type, key, field)) !== key) throw invalidField(field, 'must have an integer key')
  return key
}

type ReadText = (text: string, field: string) => Message

const textForms: ReadonlyMap<string, ReadText> = new Map([
  [TimestampSchema.typeName, readTimestamp],
  [DurationSchema.typeName, readDuration],
  [FieldMaskSchema.typeName, readFieldMask],
])

/** Reader of a message that JSON writes as a string. Undefined for all other messages. */
export function textFormOf(desc: DescMessage): ((json: unknown, field: string) => Message) | undefined {
  const read = textForms.get(desc.typeName)
  return read && ((json, field) => read(readString(json, field), field))
}

function readTimestamp(text: string, field: string): Message {
  const instant = parseTimestamp(text)
  if (!instant) throw invalidField(field, 'must be an RFC 3339 timestamp, such as 2026-08-01T12:00:00Z')
  return create(TimestampSchema, instant)
}

const maxDuration = 315_576_000_000

function readDuration(text: string, field: string): Message {
  const parts = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/.exec(text)
  if (!parts || Number(parts[2]) > maxDuration)
    throw invalidField(field, 'must be a duration in seconds, such as 3600s or 1.5s')
  const sign = parts[1] === '-' ? -1 : 1
  const nanos = Number((parts[3] ?? '').padEnd(9, '0'))
  return create(DurationSchema, { seconds: BigInt(Number(parts[2]) * sign), nanos: nanos === 0 ? 0 : nanos * sign })
}

/** Maximum number of paths in a mask. A mask is one string in JSON, so the limit on members does not cover its paths. */
const maxPaths = 1000

function readFieldMask(text: string, field: string): Message {
  const paths = text.trim() === '' ? [] : text.split(',', maxPaths + 1).map((path) => path.trim())
  if (paths.length > maxPaths) throw invalidField(field, `has more than ${maxPaths} paths`)
  if (paths.some((path) => path.length > maxPathLength)) {
    throw invalidField(field, `has a path longer than ${maxPathLength} characters`)
  }
  if (paths.includes('')) throw invalidField(field, 'has an empty path')
  // No field starts with a capital letter. An error shows such a path as it was sent.
  return create(FieldMaskSchema, { paths: paths.map((path) => (/(?:^|\.)[A-Z]/.test(path) ? path : snakeCase(path))) })
}
