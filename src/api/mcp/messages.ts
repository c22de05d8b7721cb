// JSON-RPC messages of the Model Context Protocol, in two variants. Up to revision 2025-11-25, a client starts with `initialize`.
// Since revision 2026-07-28, each request is complete by itself.
import type { IncomingHttpHeaders } from 'node:http'
import { jsonLimits } from '#edge/read-body.ts'
import { AppError, type Code } from '#lib/errors.ts'
import { jsonProblem } from '#lib/json/json-limits.ts'
import { repeatedMember } from '#lib/json/unique-json.ts'
import { isJsonObject } from '../transcoding/json-read.ts'

export type RequestId = string | number
export type Params = Record<string, unknown>

/** Request, or notification if `id` is undefined. A notification gets no response. */
export type Message = { id: RequestId | undefined; method: string; params: Params }

const modernVersion = '2026-07-28'
const olderVersions: readonly string[] = ['2025-11-25', '2025-06-18']
/** Supported versions, newest first. */
export const versions: readonly string[] = [modernVersion, ...olderVersions]

const parseError = -32700
export const invalidRequest = -32600
export const methodNotFound = -32601
export const invalidParams = -32602
export const internalError = -32603
const headerMismatch = -32020
const unsupportedVersion = -32022

const longestId = 1000
const versionKey = 'io.modelcontextprotocol/protocolVersion'
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'

type ProtocolErrorOptions = { code?: Code; http?: number; data?: object }

/** Error in a message, with its code in the protocol. */
export class ProtocolError extends AppError {
  readonly rpcCode: number
  readonly data: object | undefined

  constructor(
    rpcCode: number,
    message: string,
    { code = 'INVALID_ARGUMENT', http = 400, data }: ProtocolErrorOptions = {},
  ) {
    super(code, message, { http })
    this.rpcCode = rpcCode
    this.data = data
  }
}

/**
 * Reads one request or notification. Throws ProtocolError for anything else. Passes the ID to `seen` before further checks, so
 * that error responses can contain it.
 */
export function readMessage(body: Buffer, seen: (id: RequestId) => void): Message {
  const json = parse(body)
  if (Array.isArray(json))
    throw new ProtocolError(invalidRequest, 'batches are not supported; send one message per request')
  if (!isJsonObject(json)) throw new ProtocolError(invalidRequest, 'the body must be a JSON object')
  const { jsonrpc, id, method, params = {} } = json
  if (id !== undefined && !isId(id))
    throw new ProtocolError(invalidRequest, `id must be an integer or a string of at most ${longestId} characters`)
  if (id !== undefined) seen(id)
  if (jsonrpc !== '2.0') throw new ProtocolError(invalidRequest, 'jsonrpc must be "2.0"')
  if (typeof method !== 'string') throw new ProtocolError(invalidRequest, 'method must be a string')
  if (!isJsonObject(params)) throw new ProtocolError(invalidRequest, 'params must be an object')
  return { id, method, params }
}

function parse(body: Buffer): unknown {
  const problem = jsonProblem(body, jsonLimits)
  if (problem !== undefined) throw new ProtocolError(invalidRequest, `the body ${problem}`)
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new ProtocolError(parseError, 'the body is not valid JSON in UTF-8')
  }
  const repeated = repeatedMember(body, json)
  if (repeated !== undefined) throw new ProtocolError(invalidRequest, `the body ${repeated}`)
  return json
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'string' ? id.length <= longestId : Number.isSafeInteger(id)
}

/**
 * True if the client uses the revision without `initialize`. Throws for an unsupported revision. Also throws if headers differ
 * from the message, since a proxy may have relied on the headers.
 */
export function isModern({ method, params }: Message, headers: IncomingHttpHeaders): boolean {
  const meta = isJsonObject(params._meta) ? params._meta : {}
  const inBody = meta[versionKey]
  const inHeader = headers['mcp-protocol-version']?.toString()
  const asked = inBody ?? inHeader
  if (asked !== undefined && !versions.includes(asked as string)) {
    const requested = typeof asked === 'string' ? asked.slice(0, 64).toWellFormed() : null
    throw new ProtocolError(unsupportedVersion, 'Unsupported protocol version', {
      data: { supported: versions, requested },
    })
  }
  if (asked !== modernVersion) {
    if (inBody !== undefined && inBody !== inHeader) throw mismatch('MCP-Protocol-Version')
    return false
  }
  if (inHeader !== inBody && inBody !== undefined) throw mismatch('MCP-Protocol-Version')
  if (headers['mcp-method'] !== method) throw mismatch('Mcp-Method')
  if (method === 'tools/call' && plain(headers['mcp-name']?.toString()) !== params.name) throw mismatch('Mcp-Name')
  for (const [key, isRight] of [
    [versionKey, inBody !== undefined],
    [capabilitiesKey, isJsonObject(meta[capabilitiesKey])],
  ] as const) {
    if (!isRight) throw new ProtocolError(invalidParams, `_meta must have ${key}`)
  }
  return true
}

/** Revision for the response to `initialize`: that of the client if it is supported, else the newest one with `initialize`. */
export function agreedVersion({ protocolVersion }: Params): string {
  return olderVersions.find((version) => version === protocolVersion) ?? olderVersions[0]!
}

function mismatch(header: string): ProtocolError {
  return new ProtocolError(headerMismatch, `Header mismatch: ${header} differs from the body of the request`)
}

/** Decodes a header value, which may be marked as Base64. */
function plain(value: string | undefined): string | undefined {
  const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(value ?? '')?.[1]
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString('utf8')
}

/** Response text. `result` is JSON text. */
export function resultText(id: RequestId, result: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
}

/** Error response. It has no ID if the ID could not be read. `data` is JSON text. */
export function errorText(id: RequestId | undefined, code: number, message: string, data?: string): string {
  const errorMember = `{"code":${code},"message":${JSON.stringify(message.toWellFormed())}${data === undefined ? '' : `,"data":${data}`}}`
  return `{"jsonrpc":"2.0",${id === undefined ? '' : `"id":${JSON.stringify(id)},`}"error":${errorMember}}`
}
