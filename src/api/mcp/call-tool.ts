// One call of a tool: arguments to a request, through the door that REST and gRPC use, and the response to a result.
import type { DescField, DescMessage, Message } from '@bufbuild/protobuf'
import type { HttpArrival } from '#edge/doors.ts'
import { AppError, permissionDenied } from '#lib/errors.ts'
import { type Api, fail, invoke } from '../door.ts'
import { errorJson } from '../errors.ts'
import type { Endpoint } from '../methods.ts'
import { jsonText } from '../transcoding/json-write.ts'
import { readWhole } from '../transcoding/transcode.ts'

/** Of the JSON of one answer, which a result holds twice: more than any page of 200 has in practice. */
const maxResultBytes = 1024 * 1024

export type ToolAnswer = { code: string; result: string }

/** What goes wrong is part of the result, for the agent to read; the call of a tool never throws. */
export async function callTool(
  api: Api,
  endpoint: Endpoint,
  args: unknown,
  arrival: HttpArrival,
  numbers: readonly number[],
): Promise<ToolAnswer> {
  try {
    // The rights are those that hold together with this one, so nowhere it is held, nothing is.
    if (arrival.caller.rights.roots(numbers).length === 0) throw permissionDenied()
    const { request, bodyKeys } = readWhole(endpoint.desc.input, args)
    const response = await invoke(api, endpoint, request, bodyKeys, arrival)
    const json = jsonText(endpoint.desc.output, withoutSecrets(endpoint.desc.output, response))
    const bytes = Buffer.byteLength(json)
    if (bytes > maxResultBytes) throw tooLarge(bytes)
    return { code: 'OK', result: `"content":[${textOf(json)}],"structuredContent":${json},"isError":false` }
  } catch (error) {
    const rendered = fail(api, error, arrival)
    return { code: rendered.code, result: `"content":[${textOf(errorJson(rendered))}],"isError":true` }
  }
}

function textOf(json: string): string {
  return `{"type":"text","text":${JSON.stringify(json)}}`
}

function tooLarge(bytes: number): AppError {
  const message = `the answer has ${bytes} bytes, and a tool answers with ${maxResultBytes} at most; ask for a smaller page. What was asked for is done`
  return new AppError('RESOURCE_EXHAUSTED', message)
}

/** Agents keep what they read, and show it to others: what the contract marks as secret is left out. */
function withoutSecrets<T extends Message>(desc: DescMessage, message: T): T {
  const hiding = desc.fields.filter((field) => !field.oneof && hides(field, [desc]))
  if (hiding.length === 0) return message
  const values: Record<string, unknown> = { ...message }
  for (const field of hiding) values[field.localName] = cleaned(field, values[field.localName])
  return values as T
}

function cleaned(field: DescField, value: unknown): unknown {
  if (isSecret(field)) return field.fieldKind === 'list' ? [] : ''
  if (value === undefined) return undefined
  const clean = (one: Message) => withoutSecrets(field.message!, one)
  return field.fieldKind === 'list' ? (value as Message[]).map(clean) : clean(value as Message)
}

/** Whether the field is a secret, or a message that has one somewhere below. */
function hides(field: DescField, within: readonly DescMessage[]): boolean {
  if (isSecret(field)) return true
  const { message } = field
  if (!message || field.fieldKind === 'map' || within.includes(message)) return false
  return message.fields.some((inner) => hides(inner, [...within, message]))
}

/** Of the contract's secrets all are text. */
export function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true
}
