// POST /mcp: methods of the API as tools for agents (Model Context Protocol, Streamable HTTP). The server keeps no state between
// requests, so there are no sessions and no streams.
import { afterUnread, answer as reply } from '#edge/answer.ts'
import { authenticate, limitRights } from '#edge/caller.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { readBody } from '#edge/read-body.ts'
import { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { toolsMetadataPath, toolsPath } from '#issuer/discovery.ts'
import { AppError, codes, permissionDenied } from '#lib/errors.ts'
import { type Api, fail, invoke } from '../entry-point.ts'
import { errorJson } from '../errors.ts'
import type { Endpoint } from '../methods.ts'
import { jsonText } from '../transcoding/json-write.ts'
import { asWritten } from '../transcoding/spelling.ts'
import { readWhole } from '../transcoding/transcode.ts'
import {
  agreedVersion,
  errorText,
  internalError,
  invalidParams,
  invalidRequest,
  isModern,
  type Message,
  methodNotFound,
  ProtocolError,
  type RequestId,
  readMessage,
  resultText,
  versions,
} from './messages.ts'
import { withoutSecrets } from './secrets.ts'
import { createTools, type Tools } from './tools.ts'

/** Capability that each tool call needs, in addition to the capabilities of its method. */
const toCall = [Capability.CAP_MCP_TOOL_CALL]

const abilities = { tools: {} }
const instructions = `A container registry that keeps the full history of every tag, with organizations, members and roles. \
Each resource has a uid that begins with the uid of its group. Find uids with the list tools; uidp.descendantsOf limits a \
list to one group. Lists have pages: set pageSize (at most 200), then pass nextPageToken of the last page as pageToken. \
An update changes only the fields that you send.`

/** Time for which a client may cache the list of tools, in milliseconds. Another release may have other tools. */
const cacheable = { ttlMs: 300_000, cacheScope: 'public' }

/** Answer to a message. `text` is JSON, and empty for a notification. */
type Answer = { code: string; http: number; text: string }

/** Entry point of the tools. */
export function mcpEntryPoint(api: Api, endpoints: readonly Endpoint[]): EntryPoint {
  const tools = createTools(endpoints)
  const ids = new WeakMap<HttpArrival, RequestId>()
  return {
    name: 'mcp',
    verifies: true,
    methods: [...withVerbs([toolsPath]), ...protocolMethods, ...endpoints.map(({ method }) => method.name)],
    deadlineMs: api.app.config.requestTimeoutMs,
    matches: (path) => path === toolsPath,
    async serve(arrival) {
      const name = `${arrival.verb} ${toolsPath}`
      arrival.method = { name, fullName: name }
      checkRequest(api, arrival)
      arrival.admit(limitRights(await authenticate(api.app, api.verify, arrival), toCall))
      const message = readMessage(await readBody(arrival, api.app.config.maxBodyBytes), (id) => ids.set(arrival, id))
      send(arrival, await answer(api, tools, message, arrival))
    },
    refuse: (arrival, error) => refuse(api, arrival, error, ids.get(arrival)),
  }
}

/** Checks the method and the origin. A page of another site must not call the server with the cookies of its reader. */
function checkRequest(api: Api, arrival: HttpArrival): void {
  const { req } = arrival
  if (req.method !== 'POST') {
    arrival.countStranger()
    throw new ProtocolError(invalidRequest, 'only POST is allowed: this MCP server has no streams and no sessions', {
      code: 'UNIMPLEMENTED',
      http: 405,
    })
  }
  const { origin } = req.headers
  if (origin === undefined || isOwnOrigin(api, origin)) return
  arrival.countStranger()
  throw new ProtocolError(invalidRequest, 'the request was refused because its Origin header names another site', {
    code: 'PERMISSION_DENIED',
    http: 403,
  })
}

function isOwnOrigin({ hosts }: Api, origin: string): boolean {
  const host = /^https?:\/\/(.*)$/.exec(origin)?.[1]
  const found = hosts.find({ host, forwardedHost: undefined, forwardedProto: undefined })
  return found?.subdomain === '' && found.origin === origin
}

const protocolMethods = ['initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'notification']

async function answer(api: Api, tools: Tools, message: Message, arrival: HttpArrival): Promise<Answer> {
  const { id, method, params } = message
  const known = id === undefined ? 'notification' : method
  if (protocolMethods.includes(known)) arrival.method = { name: known, fullName: known }
  const modern = method !== 'initialize' && isModern(message, arrival.req.headers)
  // A notification, such as a cancellation, changes nothing: answers are sent at once.
  if (id === undefined) return { code: 'OK', http: 202, text: '' }

  const serverInfo = { name: 'pinfold', title: 'Pinfold', version: tools.texts().version }
  const result = (code: string, members: string): Answer => {
    const self = `"_meta":${JSON.stringify({ 'io.modelcontextprotocol/serverInfo': serverInfo })}`
    const whole = modern ? `{"resultType":"complete",${self}${members && ','}${members}}` : `{${members}}`
    return { code, http: 200, text: resultText(id, whole) }
  }
  const inner = (value: object) => JSON.stringify(value).slice(1, -1)
  const fresh = modern ? `,${inner(cacheable)}` : ''
  if (method === 'tools/list') {
    if (params.cursor !== undefined)
      return errorAnswer(id, invalidParams, 'cursor is not supported: the list of tools has only one page')
    return result('OK', `"tools":${tools.texts().list}${fresh}`)
  }
  if (method === 'tools/call') {
    // Only a text is shown: an object could have a member `toString`.
    const name = typeof params.name === 'string' ? params.name : ''
    const endpoint = tools.find(name)
    if (!endpoint) return errorAnswer(id, invalidParams, `Unknown tool: ${name.slice(0, 128)}`)
    arrival.method = endpoint.method
    const called = await callTool(api, endpoint, params.arguments ?? {}, arrival, toCall)
    return result(called.code, called.result)
  }
  if (modern && method === 'server/discover') {
    return result('OK', `${inner({ supportedVersions: versions, capabilities: abilities, instructions })}${fresh}`)
  }
  if (!modern && method === 'initialize') {
    return result(
      'OK',
      inner({ protocolVersion: agreedVersion(params), capabilities: abilities, serverInfo, instructions }),
    )
  }
  if (!modern && method === 'ping') return result('OK', '')
  const http = modern ? 404 : 200
  return { ...errorAnswer(id, methodNotFound, 'method not found'), code: 'UNIMPLEMENTED', http }
}

function errorAnswer(id: RequestId, rpcCode: number, message: string): Answer {
  return { code: 'INVALID_ARGUMENT', http: 200, text: errorText(id, rpcCode, message) }
}

function refuse(api: Api, arrival: HttpArrival, error: unknown, id: RequestId | undefined): void {
  const rendered = fail(api, error, arrival)
  const { code, message, http, retryAfter } = rendered
  const protocol = error instanceof ProtocolError ? error : undefined
  const data = protocol ? protocol.data && JSON.stringify(protocol.data) : errorJson(rendered)
  const headers: Record<string, string> = {}
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
  if (http === 405) headers.allow = 'POST'
  if (code === 'UNAUTHENTICATED') {
    const shown = arrival.authorization === undefined ? '' : 'error="invalid_token", '
    headers['www-authenticate'] = `Bearer ${shown}resource_metadata="${api.url}${toolsMetadataPath}"`
  }
  const rpcCode = protocol?.rpcCode ?? rpcCodeOf(code, error)
  send(arrival, { code, http, text: errorText(id, rpcCode, message, data) }, headers)
}

/** Error number of a response: the number of the API, which the protocol does not reserve. */
function rpcCodeOf(code: AppError['code'], error: unknown): number {
  if (code === 'INTERNAL') return internalError
  return error instanceof AppError && code === 'INVALID_ARGUMENT' ? invalidRequest : codes[code].number
}

function send(arrival: HttpArrival, { code, http, text }: Answer, headers: Record<string, string> = {}): void {
  const type = text === '' ? {} : { 'content-type': 'application/json' }
  reply(arrival, http, text, { ...type, ...headers, ...afterUnread(arrival) }, code)
}

/** Largest JSON of one answer, in bytes. A result holds it twice. No page of 200 items needs more in practice. */
const maxResultBytes = 1024 * 1024

type ToolAnswer = { code: string; result: string }

/** Calls a tool. Never throws: an error is part of the result, so that the agent can read it. */
async function callTool(
  api: Api,
  endpoint: Endpoint,
  args: unknown,
  arrival: HttpArrival,
  numbers: readonly number[],
): Promise<ToolAnswer> {
  try {
    // The caller must hold the capabilities of tools and of the method in the same group.
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
  const message = `the tool ran, but its result of ${bytes} bytes exceeds the limit of ${maxResultBytes} bytes; for lists, set a smaller pageSize`
  return new AppError('RESOURCE_EXHAUSTED', message)
}
