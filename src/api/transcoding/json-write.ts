// Writes messages as JSON text. Each message type is compiled once into closures. This is faster than building an object and
// calling JSON.stringify.
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf'
import {
  type Duration,
  DurationSchema,
  type FieldMask,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
  ValueSchema,
} from '@bufbuild/protobuf/wkt'
import { camelCase } from '#lib/fields.ts'
import { IsoTimestamp, toIso } from '#lib/timestamp.ts'
import { versionOfType } from '../methods.ts'
import { writeValue } from './json-values.ts'
import type { Values } from './message-fields.ts'

type Write = (value: unknown) => string
/** Appends the field of a message to `out`, if the message has it, and returns the result. */
type WriteMember = (out: string, message: Values) => string
type Naming = 'jsonName' | 'name'

// Presence of a plain proto3 scalar, enum, list or map, with its number in the descriptors.
const implicit = 2

const compiled = { jsonName: new WeakMap<DescMessage, Write>(), name: new WeakMap<DescMessage, Write>() }

/**
 * JSON of a message, with names in lower camel case. Lists, maps and plain scalars are always present, even if empty. Unset
 * optional fields and oneofs are left out. Version 1 writes an unset enum as the name of its zero, and an unset message as
 * `null`; version 2 leaves out both. A zero that is a real value, such as `STATE_WAITING`, is present in both versions.
 */
export function jsonText(desc: DescMessage, message: Message): string {
  return writerOf(desc, 'jsonName')(message)
}

/** JSON with the member names of the contract (snake_case), for event bodies. */
export function eventText(desc: DescMessage, message: Message): string {
  return writerOf(desc, 'name')(message)
}

function writerOf(desc: DescMessage, naming: Naming): Write {
  return wellKnown.get(desc.typeName) ?? compiled[naming].get(desc) ?? compile(desc, naming)
}

function compile(desc: DescMessage, naming: Naming): Write {
  const members: WriteMember[] = []
  const write: Write = (message) => {
    let out = '{'
    for (let i = 0; i < members.length; i++) out = members[i]!(out, message as Values)
    return `${out}}`
  }
  // Stored before its fields are compiled, since a message may contain itself.
  compiled[naming].set(desc, write)
  // Bodies of events are the same in both versions.
  const complete = naming === 'jsonName' && versionOfType(desc.typeName) === 'v1'
  for (const member of desc.members) members.push(memberOf(member, naming, complete))
  return write
}

function memberOf(member: DescField | DescOneof, naming: Naming, complete: boolean): WriteMember {
  if (member.kind === 'oneof') return oneofOf(member, naming)
  const { localName } = member
  const [first, next] = keysOf(member, naming)
  const write = writeOf(member, naming)
  if (member.presence !== implicit) {
    const unset = complete && isPlainMessage(member)
    return (out, message) => {
      const value = message[localName]
      if (value !== undefined) return out + (out.length === 1 ? first : next) + write(value)
      return unset ? `${out + (out.length === 1 ? first : next)}null` : out
    }
  }
  if (member.fieldKind === 'enum' && !complete && (naming === 'name' || !isValue(member.enum))) {
    return (out, message) => {
      const value = message[localName]
      return value === 0 ? out : out + (out.length === 1 ? first : next) + write(value)
    }
  }
  if (member.scalar === ScalarType.STRING && member.fieldKind === 'scalar') {
    const [firstQuoted, nextQuoted] = [`${first}"`, `${next}"`]
    return (out, message) => {
      const value = message[localName] as string
      const key = out.length === 1 ? firstQuoted : nextQuoted
      return unsafe.test(value) ? out + key + JSON.stringify(value).slice(1) : `${out + key + value}"`
    }
  }
  return (out, message) => out + (out.length === 1 ? first : next) + write(message[localName])
}

/** True if the zero of an enum is a real value and does not mean unset. */
function isValue({ values }: DescEnum): boolean {
  const zero = values.find(({ number }) => number === 0)?.name ?? ''
  return !/(?:^|_)(?:UNSPECIFIED|UNKNOWN)$/.test(zero)
}

/** True if the field is a message, without `optional` and outside of a oneof. */
export function isPlainMessage(field: DescField): boolean {
  return field.fieldKind === 'message' && !field.oneof && !field.proto.proto3Optional
}

function oneofOf(oneof: DescOneof, naming: Naming): WriteMember {
  const cases = new Map(
    oneof.fields.map((field) => [field.localName, { keys: keysOf(field, naming), write: writeOf(field, naming) }]),
  )
  const { localName } = oneof
  return (out, message) => {
    const set = message[localName] as { case: string | undefined; value?: unknown }
    const found = set.case === undefined ? undefined : cases.get(set.case)
    return found ? out + found.keys[out.length === 1 ? 0 : 1] + found.write(set.value) : out
  }
}

/** JSON key of the field as the first member of an object, and as a later member, which starts with a comma. */
function keysOf(field: DescField, naming: Naming): [first: string, next: string] {
  const key = `${JSON.stringify(field[naming])}:`
  return [key, `,${key}`]
}

function writeOf(field: DescField, naming: Naming): Write {
  const write = singleOf(field, naming)
  if (field.fieldKind === 'list') return listOf(write)
  if (field.fieldKind === 'map') return mapOf(write)
  return write
}

function singleOf(field: DescField, naming: Naming): Write {
  if (field.message) return writerOf(field.message, naming)
  if (field.enum) return enumOf(field.enum)
  switch (field.scalar) {
    case ScalarType.STRING:
      return stringText as Write
    case ScalarType.BYTES:
      return (value) => `"${Buffer.from(value as Uint8Array).toString('base64')}"`
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return (value) => `"${value}"`
    default:
      return String
  }
}

function listOf(write: Write): Write {
  return (value) => {
    const list = value as unknown[]
    if (list.length === 0) return '[]'
    let out = `[${write(list[0])}`
    for (let i = 1; i < list.length; i++) out += `,${write(list[i])}`
    return `${out}]`
  }
}

function mapOf(write: Write): Write {
  return (value) => {
    const map = value as Values
    let out = '{'
    for (const key of Object.keys(map)) out += `${out.length === 1 ? '' : ','}${stringText(key)}:${write(map[key])}`
    return `${out}}`
  }
}

function enumOf(desc: DescEnum): Write {
  const names = new Map(desc.values.map((value) => [value.number, `"${value.name}"`]))
  return (value) => names.get(value as number) ?? String(value)
}

// Characters that JSON must escape: quotes, backslashes, control characters and, for well-formed text, single surrogates.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const unsafe = /["\\\u0000-\u001f\ud800-\udfff]/

function stringText(value: string): string {
  return unsafe.test(value) ? JSON.stringify(value) : `"${value}"`
}

const wellKnown: ReadonlyMap<string, Write> = new Map([
  [TimestampSchema.typeName, timestampText as Write],
  [DurationSchema.typeName, durationText as Write],
  [FieldMaskSchema.typeName, (value: unknown) => stringText((value as FieldMask).paths.map(camelCase).join(','))],
  [ValueSchema.typeName, writeValue as Write],
])

function timestampText(value: IsoTimestamp | Timestamp): string {
  return value instanceof IsoTimestamp ? `"${value.iso}"` : `"${toIso(value)}"`
}

function durationText({ seconds, nanos }: Duration): string {
  const sign = seconds < 0n || nanos < 0 ? '-' : ''
  const fraction = String(Math.abs(nanos))
    .padStart(9, '0')
    .replace(/0{1,9}$/, '')
  return `"${sign}${seconds < 0n ? -seconds : seconds}${fraction && `.${fraction}`}s"`
}
