// Strict reader of proto-JSON. Refuses unknown members. Errors contain the path of the member.
import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf'
import { type AppError, invalid } from '#lib/errors.ts'
import { parseYielding } from '#lib/json/parse-yielding.ts'
import { repeatedMember } from '#lib/json/unique-json.ts'
import { readEnum, readMapKey, readScalar, textFormOf } from './json-scalars.ts'
import { isValue, readValue } from './json-values.ts'
import { fieldNamed, isWellKnown, join, type ListField, setField, shown, type Values } from './message-fields.ts'

const maxDepth = 64

/** Bodies above this size are not searched for repeated members, since that takes long. Only imports are larger. */
const maxSearched = 1024 * 1024

/** Parses a request body. An empty body is read as `{}`. Refuses an object that has the same member twice. */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return {}
  let json: unknown
  try {
    json = JSON.parse(utf8.decode(bytes))
  } catch (error) {
    throw toInvalidBody(error)
  }
  refuseRepeated(bytes, json)
  return json
}

/**
 * Parses a large body for this message in several turns of the event loop, with the result of `parseBody`. The values of large
 * members that the message does not have are not parsed, since `readJson` refuses these members. With `undefined`, all are parsed.
 */
export async function parseLargeBody(bytes: Buffer, desc: DescMessage | undefined): Promise<unknown> {
  const isSearched = bytes.length <= maxSearched
  let json: unknown
  try {
    json = await parseYielding(bytes, (path) => isSearched || !desc || hasMember(desc, path))
  } catch (error) {
    throw toInvalidBody(error)
  }
  refuseRepeated(bytes, json)
  return json
}

function refuseRepeated(bytes: Buffer, json: unknown): void {
  const repeated = bytes.length > maxSearched ? undefined : repeatedMember(bytes, json)
  if (repeated !== undefined) throw invalid({ field: 'body', description: repeated })
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function toInvalidBody(error: unknown): AppError {
  return invalid({ field: 'body', description: `is not valid JSON: ${reasonOf(error)}` })
}

/**
 * Message of a syntax error, without its quotation. V8 quotes the text around the error, which may be a secret, and errors are
 * logged.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof SyntaxError)) return 'not UTF-8'
  return error.message.replace(/, (?:\.\.\.)?".*/s, '').toWellFormed()
}

/** True if JSON of the message can have this member. True inside of lists, maps and types of google.protobuf. */
function hasMember(desc: DescMessage, path: readonly string[]): boolean {
  let message = desc
  for (const name of path) {
    const field = fieldNamed(message, name)
    if (!field) return false
    if (field.fieldKind !== 'message' || isWellKnown(field.message)) return true
    message = field.message
  }
  return true
}

/** Creates a message from `json`. Throws INVALID_ARGUMENT. The paths of its violations start with `path`. */
export function readJson(desc: DescMessage, json: unknown, path = ''): Message {
  return readMessage(desc, json, path, 1)
}

/** Like `readJson`, for a body that is a JSON list. */
export function readJsonList(field: ListField, json: unknown): unknown {
  return readField(field, json, field.name, 1)
}

export function isJsonObject(json: unknown): json is Values {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

function readMessage(desc: DescMessage, json: unknown, path: string, depth: number): Message {
  const readText = textFormOf(desc)
  if (readText) return readText(json, path)
  if (!isJsonObject(json)) throw invalid({ field: path || 'body', description: 'must be a JSON object' })
  if (depth > maxDepth) throw invalid({ field: path, description: 'is nested too deeply' })

  const message = create(desc)
  const seen = new Set<DescField>()
  for (const name of Object.keys(json)) {
    const field = fieldNamed(desc, name)
    if (!field) throw invalid({ field: join(path, shown(name)), description: 'is not a known field' })
    const at = join(path, field.name)
    if (seen.has(field)) throw invalid({ field: at, description: 'is given twice, in snake_case and in camelCase' })
    seen.add(field)
    // For `google.protobuf.Value`, null is a value. For other types, null means unset.
    const isNull = json[name] === null && !(field.fieldKind === 'message' && isValue(field.message))
    if (!isNull) setField(message, field, readField(field, json[name], at, depth), path)
  }
  return message
}

function readField(field: DescField, json: unknown, at: string, depth: number): unknown {
  if (field.fieldKind === 'map') return readMap(field, json, at, depth)
  if (field.fieldKind !== 'list') return readSingle(field, json, at, depth)
  if (!Array.isArray(json)) throw invalid({ field: at, description: 'must be a list' })
  return json.map((element, index) => readSingle(field, element, `${at}[${index}]`, depth))
}

/** Reads the value of a singular field, or one element of a list or map. */
function readSingle(field: DescField, json: unknown, at: string, depth: number): unknown {
  if (isValue(field.message)) return readValue(json, at, depth + 1)
  if (json === null) throw invalid({ field: at, description: 'must not be null' })
  if (field.message) return readMessage(field.message, json, at, depth + 1)
  if (field.enum) return readEnum(field.enum, json, at)
  return readScalar(field.scalar, json, at)
}

function readMap(field: DescField & { fieldKind: 'map' }, json: unknown, at: string, depth: number): Values {
  if (!isJsonObject(json)) throw invalid({ field: at, description: 'must be a JSON object' })
  const map: Values = {}
  for (const name of Object.keys(json)) {
    const atKey = `${at}["${shown(name)}"]`
    const key = readMapKey(field.mapKey, name, atKey)
    const value = readSingle(field, json[name], atKey, depth)
    // A plain assignment to `__proto__` would change the prototype instead.
    if (key === '__proto__') {
      Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true })
    } else map[key] = value
  }
  return map
}
