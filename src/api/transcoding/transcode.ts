// REST to one request message: path variables, JSON body and query parameters.
import { create, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf'
import { invalid } from '#lib/errors.ts'
import type { Members } from '../naming/members.ts'
import { resourceFieldOf } from './field-mask.ts'
import { isJsonObject, parseBody, readJson, readJsonList } from './json-read.ts'
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
import { bindQuery } from './query.ts'
import type { Binding } from './routes.ts'

/** `bodyKeys`: the fields (proto names) that the JSON of the resource has; undefined when the method takes no body. */
export type Transcoded = { request: Message; bodyKeys: string[] | undefined }

/**
 * Throws INVALID_ARGUMENT, naming the field, for anything that the method's contract does not provide for. `members` knows
 * of further names.
 */
export function readRequest(
  entry: { desc: DescMethod },
  binding: Binding,
  variables: readonly Variable[],
  search: string,
  body: Buffer | undefined,
  members?: Pick<Members, 'read'>,
): Transcoded {
  const { input } = entry.desc
  const { request, bodyKeys } = readBody(entry.desc, binding, body, members)
  for (const [path, value] of variables) bindVariable(input, request, path, value)
  bindQuery(input, request, search, boundBy(binding, request))
  return { request, bodyKeys }
}

function readBody(
  method: DescMethod,
  binding: Binding,
  body: Buffer | undefined,
  members: Pick<Members, 'read'> | undefined,
): Transcoded {
  const { input } = method
  if (binding.body === '') return { request: create(input), bodyKeys: undefined }

  const parsed = parseBody(body ?? Buffer.alloc(0))
  if (binding.body === '*') return readWhole(input, members ? members.read(input, parsed) : parsed)

  const request = create(input)
  const field = fieldNamed(input, binding.body) as MessageField | ListField
  if (field.fieldKind === 'list') {
    setField(request, field, readJsonList(field, parsed), '')
    return { request, bodyKeys: [] }
  }
  const json = members ? members.read(field.message, parsed) : parsed
  setField(request, field, readJson(field.message, json), '')
  return { request, bodyKeys: keysOf(field.message, json) }
}

/** A request that is all in one JSON. Throws as `readRequest` does. */
export function readWhole(input: DescMessage, json: unknown): Transcoded {
  const request = readJson(input, json)
  const resource = resourceFieldOf(input)
  if (!resource) return { request, bodyKeys: keysOf(input, json) }
  const values = json as Values
  return { request, bodyKeys: keysOf(resource.message, values[resource.jsonName] ?? values[resource.name]) }
}

/** A member that is null counts: it is there, and clears the field. */
function keysOf(desc: DescMessage, json: unknown): string[] {
  return isJsonObject(json) ? Object.keys(json).map((name) => fieldNamed(desc, name)!.name) : []
}

/** The path decides. A body may repeat what the path says, or leave it empty. */
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
  if (given && given !== value) throw invalid({ field: field.name, description: 'does not match the path' })
  setField(owner, field, value, '')
}

/** With `body: "*"` nothing is left for the query, except a mask that the body does not have. */
function boundBy(binding: Binding, request: Message): (at: string) => boolean {
  const all = binding.body === '*'
  const masked = (request as unknown as Values).updateMask !== undefined
  const inBody = (at: string) => (all ? masked || at !== 'update_mask' : at === binding.body)
  return (at) => binding.fields.includes(at) || inBody(at)
}
