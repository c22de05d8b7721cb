// One call of a tool: arguments to a request, through the door that REST and gRPC use, and the response to a result.
import type { HttpArrival } from '#edge/doors.ts'
import { AppError, permissionDenied } from '#lib/errors.ts'
import { type Api, fail, invoke } from '../door.ts'
import { errorJson } from '../errors.ts'
import type { Endpoint } from '../methods.ts'
import { jsonText } from '../transcoding/json-write.ts'
import { asWritten } from '../transcoding/spelling.ts'
import { readWhole } from '../transcoding/transcode.ts'
import { withoutSecrets } from './secrets.ts'

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
    const rendered = fail(api, asWritten(error, '', Buffer.from(JSON.stringify(args ?? {}))), arrival)
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
