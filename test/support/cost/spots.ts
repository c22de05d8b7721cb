// Fields of a request message, with the largest values for them as protobuf and as JSON.
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import type { Json } from '../pinfold.ts'

/** Field and the path of fields to it. All fields of the path are messages or lists of messages. */
export type Spot = { path: readonly DescField[]; field: DescField }

const deepest = 5

/** All fields of a request, including those of nested messages. */
export function spotsOf(desc: DescMessage, path: readonly DescField[] = []): Spot[] {
  return desc.fields.flatMap((field) => {
    const inner = isMessages(field) && path.length < deepest ? spotsOf(field.message!, [...path, field]) : []
    return [{ path, field }, ...inner]
  })
}

/** Name of the field in the contract, such as `repo.description`. */
export function nameOf({ path, field }: Spot): string {
  return [...path, field].map(({ name }) => name).join('.')
}

const isList = (field: DescField): boolean => field.fieldKind === 'list'
/** A well-known type is a single text in JSON. */
const isPlain = ({ message }: DescField): boolean => message?.typeName.startsWith('google.protobuf.') ?? false

function isMessages(field: DescField): boolean {
  return field.fieldKind !== 'map' && field.message !== undefined && !isPlain(field)
}

/** True if the field is a single text in JSON: strings, field masks, times and durations. */
export function isText(field: DescField): boolean {
  if (field.fieldKind === 'message' && isPlain(field)) return true
  return field.fieldKind !== 'map' && (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES)
}

/** Kinds of values that fill a field. */
export type Filling =
  | { kind: 'text'; text: string }
  | { kind: 'elements'; count: number }
  | { kind: 'copies'; value: unknown; count: number }
  | { kind: 'entries'; count: number }

function varint(value: number): Buffer {
  const bytes: number[] = []
  let left = value
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80)
  bytes.push(left)
  return Buffer.from(bytes)
}

const tag = ({ number }: DescField, wireType: number): Buffer => varint(number * 8 + wireType)

/** One length-delimited value of a field, in protobuf. */
function delimited(field: DescField, bytes: Buffer): Buffer {
  return Buffer.concat([tag(field, 2), varint(bytes.length), bytes])
}

function repeated(bytes: Buffer, count: number): Buffer {
  return Buffer.alloc(bytes.length * count, bytes)
}

function entry(field: DescField & { fieldKind: 'map' }, at: number): Buffer {
  const isNamed = field.mapKey === ScalarType.STRING
  const name = Buffer.from(at.toString(36))
  const key = isNamed
    ? Buffer.concat([Buffer.from([0x0a]), varint(name.length), name])
    : Buffer.concat([Buffer.from([0x08]), varint(at)])
  return delimited(field, key)
}

function plainText(field: DescField, text: string): Buffer {
  const bytes = Buffer.from(text)
  return delimited(field, Buffer.concat([Buffer.from([0x0a]), varint(bytes.length), bytes]))
}

/** Bytes of a message with only this field. If they are appended to another message, the field is merged into it. */
export function bytesOf({ path, field }: Spot, filling: Filling, toBytes?: (value: unknown) => Buffer): Buffer {
  let bytes: Buffer
  // Field 1 of a field mask is its paths. In a time, field 1 is a number, so this message is invalid.
  if (filling.kind === 'text')
    bytes = isPlain(field) ? plainText(field, filling.text) : delimited(field, Buffer.from(filling.text))
  else if (filling.kind === 'copies') {
    bytes = repeated(
      delimited(field, toBytes ? toBytes(filling.value) : Buffer.from(String(filling.value))),
      filling.count,
    )
  } else if (filling.kind === 'entries') {
    const entries = Array.from({ length: filling.count }, (_, at) => entry(field as never, at))
    bytes = Buffer.concat(entries)
  } else if (field.message || isText(field)) bytes = repeated(delimited(field, Buffer.alloc(0)), filling.count)
  else bytes = delimited(field, Buffer.alloc(filling.count * widthOf(field)))
  return path.reduceRight((inner, outer) => delimited(outer, inner), bytes)
}

function widthOf({ scalar }: DescField): number {
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FIXED64 || scalar === ScalarType.SFIXED64) return 8
  return scalar === ScalarType.FLOAT || scalar === ScalarType.FIXED32 || scalar === ScalarType.SFIXED32 ? 4 : 1
}

/** The same request in JSON, with this field filled. */
export function jsonWith(request: Json, { path, field }: Spot, filling: Filling): Json {
  const whole = structuredClone(request)
  let owner = whole
  for (const step of path) {
    const inner = firstOf(owner[step.jsonName] ?? {})
    owner[step.jsonName] = isList(step) ? [inner] : inner
    owner = inner
  }
  owner[field.jsonName] = valueFor(field, filling)
  return whole
}

const firstOf = (value: unknown): Json => ((Array.isArray(value) ? value[0] : value) ?? {}) as Json

function valueFor(field: DescField, filling: Filling): unknown {
  if (filling.kind === 'text') return isList(field) ? [filling.text] : filling.text
  if (filling.kind === 'copies') return new Array(filling.count).fill(filling.value)
  if (filling.kind === 'elements') return new Array(filling.count).fill(emptyOf(field))
  return Object.fromEntries(Array.from({ length: filling.count }, (_, at) => [at.toString(36), emptyOf(field)]))
}

/** Shortest JSON for one element of the field. */
function emptyOf(field: DescField): unknown {
  if (isPlain(field)) return field.message!.typeName.endsWith('Duration') ? '0s' : '2026-01-01T00:00:00Z'
  if (field.message) return {}
  if (field.enum) return 0
  return isText(field) || (field.fieldKind === 'map' && field.scalar === ScalarType.STRING) ? '' : 0
}
