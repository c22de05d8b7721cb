// Converts a REST request to a message, from its path variables, JSON body and query parameters.
import { create, type DescMessage, type DescMethod, type Message, ScalarType } from '@bufbuild/protobuf'
import type { FieldMask } from '@bufbuild/protobuf/wkt'
import { invalid } from '#lib/errors.ts'
import type { Members } from '../naming/members.ts'
import { maskedJson, resourceFieldOf } from './field-mask.ts'
import { isJsonObject, parseBody, readJson, readJsonList } from './json-read.ts'
import { readScalar } from './json-scalars.ts'
import {
  childOf,
  fieldNamed,
  getField,
  type ListField,
  type MessageField,
  setField,
  type Values,
} from './message-fields.ts'
import type { Variable } from './path-template.ts'
import { bindQuery, isOlderList } from './query.ts'
import type { Binding } from './routes.ts'

/**
 * Message and body members. `bodyKeys` are the proto names of the members in the JSON of the resource. Undefined if the method
 * has no body.
 */
export type Transcoded = { request: Message; bodyKeys: string[] | undefined }

/** Body of a request: its bytes, or its JSON if it is already parsed. */
export type Body = Buffer | { json: unknown } | undefined

/** Message of the body. Undefined if the body is a list. */
export function messageOfBody({ desc: { input } }: { desc: DescMethod }, { body }: Binding): DescMessage | undefined {
  if (body === '*') return input
  const field = fieldNamed(input, body)
  return field?.fieldKind === 'message' ? field.message : undefined
}

/**
 * Reads a request. Throws INVALID_ARGUMENT with the field for anything that the contract does not allow. `members` converts a
 * vendor's names.
 */
export function readRequest(
  entry: { desc: DescMethod },
  binding: Binding,
  variables: readonly Variable[],
  search: string,
  body: Body,
  members?: Names,
): Transcoded {
  const { input } = entry.desc
  const query = create(input)
  bindQuery(input, query, search, boundBy(binding), { olderPages: isOlderList(entry.desc) })
  const { request, bodyKeys } = readBody(entry.desc, binding, query, body, members)
  for (const [path, value] of variables) bindVariable(input, request, path, value)
  return { request, bodyKeys }
}

type Names = Pick<Members, 'read' | 'readPaths'>

function readBody(
  { input }: DescMethod,
  binding: Binding,
  query: Message,
  body: Body,
  members: Names | undefined,
): Transcoded {
  if (binding.body === '') return { request: query, bodyKeys: undefined }

  const parsed = body && 'json' in body ? body.json : parseBody(body ?? Buffer.alloc(0))
  const mask = (query as unknown as Values).updateMask as FieldMask | undefined
  if (binding.body === '*') {
    const whole = readWhole(input, parsed, members, mask)
    const request = whole.request as unknown as Values
    if (mask && request.updateMask)
      throw invalid({ field: 'update_mask', description: 'is given twice, as a parameter and in the body' })
    if (mask) request.updateMask = mask
    return whole
  }

  const field = fieldNamed(input, binding.body) as MessageField | ListField
  if (field.fieldKind === 'list') {
    setField(query, field, readJsonList(field, parsed), '')
    return { request: query, bodyKeys: [] }
  }
  const ours = members ? members.read(field.message, parsed) : parsed
  const json = changedMembers(field.message, ours, mask?.paths, members)
  setField(query, field, readJson(field.message, json), '')
  return { request: query, bodyKeys: keysOf(field.message, json) }
}

/** Reads a request from one JSON value. Throws like `readRequest`. `mask` is an update mask that is not part of the JSON. */
export function readWhole(input: DescMessage, json: unknown, members?: Names, mask?: FieldMask): Transcoded {
  const resource = resourceFieldOf(input)
  const values = members ? members.read(input, json) : json
  if (!resource || !isJsonObject(values)) return { request: readJson(input, values), bodyKeys: keysOf(input, values) }

  const name = resource.jsonName in values ? resource.jsonName : resource.name
  const given = values.updateMask ?? values.update_mask
  const paths = mask?.paths ?? (typeof given === 'string' ? given.split(',') : undefined)
  // Keeps the uid, since no URL path names the resource here.
  const read = paths?.length ? [...paths, 'uid'] : undefined
  const changed = changedMembers(resource.message, values[name], read, members)
  const request = readJson(input, name in values ? { ...values, [name]: changed } : values)
  return { request, bodyKeys: keysOf(resource.message, changed) }
}

/** JSON of a resource without the members that an update mask excludes. */
function changedMembers(
  desc: DescMessage,
  json: unknown,
  paths: readonly string[] | undefined,
  members: Names | undefined,
): unknown {
  if (!paths?.length) return json
  return maskedJson(desc, json, members ? members.readPaths(desc, paths) : paths)
}

/** Proto names of the members in the JSON. Includes members that are null, which clear their fields. */
function keysOf(desc: DescMessage, json: unknown): string[] {
  return isJsonObject(json) ? Object.keys(json).map((name) => fieldNamed(desc, name)!.name) : []
}

/** Sets a field from the path. The body may repeat the value or leave it empty. Throws if the body has another value. */
function bindVariable(input: DescMessage, request: Message, path: string, value: string): void {
  const names = path.split('.')
  let [owner, desc] = [request, input]
  for (const name of names.slice(0, -1)) {
    const field = fieldNamed(desc, name) as MessageField
    owner = childOf(owner, field, '')
    desc = field.message
  }
  const field = fieldNamed(desc, names.at(-1)!)!
  const given = getField(owner, field)
  if (given && given !== value) throw invalid({ field: field.name, description: 'differs from the value in the path' })
  // All variables of the contract are texts.
  setField(owner, field, readScalar(ScalarType.STRING, value, field.name), '')
}

/**
 * Returns a function that is true for fields that the path or the body sets. With `body: "*"`, the query can contain only an
 * update mask.
 */
function boundBy(binding: Binding): (at: string) => boolean {
  const inBody = (at: string) => (binding.body === '*' ? at !== 'update_mask' : at === binding.body)
  return (at) => binding.fields.includes(at) || inBody(at)
}
