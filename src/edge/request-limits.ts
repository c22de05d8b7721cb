// Limits on requests, checked before routing. Entry points refuse requests above the limits, each in its own error format.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { AppError } from '#lib/errors.ts'

/** Maximum length of a path. A path contains only names; requests with many values have them in the query. */
const maxPathBytes = 16 * 1024
const maxTargetBytes = 128 * 1024
const maxFieldsBytes = 16 * 1024
/** Maximum size of the request line and the headers: the sum of the limits above, and space for separators. */
export const maxHeadBytes = 160 * 1024

/** Maximum size of the metadata of a gRPC call, in bytes. */
const maxMetadataBytes = 64 * 1024

/**
 * Maximum decompressed size of the headers of one HTTP/2 request. For larger headers, or a single field of 64 KiB, the client
 * gets a protocol error and no response. Headers below this size but above the other limits get a response.
 */
export const http2Limits = { maxHeaderListSize: maxHeadBytes, maxHeaderListPairs: 1000 }

/** Error for a gRPC call that is refused before routing. Undefined if the call is accepted. */
export function problemOfCall(headers: IncomingHttpHeaders): AppError | undefined {
  const { host, ':authority': authority } = headers
  if (host !== undefined && differs(String(authority ?? host), host)) return otherHost(':authority')
  let bytes = 0
  for (const name in headers) bytes += bytesOf(name, String(headers[name]))
  if (bytes <= maxMetadataBytes) return undefined
  return new AppError('RESOURCE_EXHAUSTED', `the metadata is too large; at most ${maxMetadataBytes} bytes are allowed`)
}

/**
 * Error for a request that is refused before routing. Undefined if the request is accepted. `authority` is the host of an
 * absolute request target.
 */
export function problemOf(req: IncomingMessage, authority?: string): AppError | undefined {
  const { url = '', headers, rawHeaders } = req
  if (url.length > maxTargetBytes) return tooLong('target', maxTargetBytes)
  const mark = url.length > maxPathBytes ? url.indexOf('?') : 0
  if (mark < 0 || mark > maxPathBytes) return tooLong('path', maxPathBytes)
  if (fieldBytes(rawHeaders) > maxFieldsBytes) {
    return refusal(
      431,
      'INVALID_ARGUMENT',
      `the header fields are too large; at most ${maxFieldsBytes} bytes are allowed`,
    )
  }
  if (req.httpVersion === '1.1' && headers.host === undefined) {
    return refusal(400, 'INVALID_ARGUMENT', 'the header field Host is required')
  }
  const hostProblem = problemOfHosts(req, authority)
  if (hostProblem) return hostProblem
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    return refusal(417, 'INVALID_ARGUMENT', 'the only supported value of the header field Expect is 100-continue')
  }
  return undefined
}

/**
 * Error for a request with two different hosts. A proxy may have checked one of them while the server uses the other (RFC 9112,
 * section 3.2; RFC 9113, section 8.3.1).
 */
function problemOfHosts({ headers, rawHeaders }: IncomingMessage, target: string | undefined): AppError | undefined {
  const hosts: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 4 && name.toLowerCase() === 'host') hosts.push(rawHeaders[i + 1]!)
  }
  const [host] = hosts
  if (host === undefined) return undefined
  if (hosts.length > 1) return refusal(400, 'INVALID_ARGUMENT', 'the header field Host must be sent only once')
  const authority = headers[':authority']?.toString()
  if (authority !== undefined && differs(authority, host)) return otherHost(':authority')
  if (target !== undefined && differs(target, host)) return otherHost('the host of the request target')
  return undefined
}

/** True if two authorities name different hosts. A client may leave out the default port. */
function differs(one: string, other: string): boolean {
  const [first, second] = [one, other].map((host) => host.toLowerCase().replace(/:(?:80|443)$/, ''))
  return first !== second
}

function otherHost(authority: string): AppError {
  return refusal(400, 'INVALID_ARGUMENT', `the header field Host must be the same as ${authority}`)
}

function fieldBytes(rawHeaders: readonly string[]): number {
  let bytes = 0
  for (let i = 0; i < rawHeaders.length; i += 2) bytes += bytesOf(rawHeaders[i]!, rawHeaders[i + 1]!)
  return bytes
}

/**
 * Number of bytes of the name and the value. HTTP/2 pseudo-header fields do not count, since they are part of the request line.
 */
function bytesOf(name: string, value: string): number {
  return name.charCodeAt(0) === colon ? 0 : name.length + value.length
}
const colon = 0x3a

/** Error for a body that does not arrive in time. */
export function lateBody(): AppError {
  return refusal(408, 'DEADLINE_EXCEEDED', 'the request body did not arrive in time')
}

/** Error for data that is not a valid request, by the error code of Node's parser. */
export function unreadable(code: string | undefined): AppError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return refusal(
        431,
        'INVALID_ARGUMENT',
        `the request line and the header fields are too large; at most ${maxHeadBytes} bytes are allowed`,
      )
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return refusal(413, 'INVALID_ARGUMENT', 'the extensions of a chunk are too long')
    case 'PINFOLD_SMALL_CHUNKS':
      return refusal(413, 'INVALID_ARGUMENT', 'the body has too many chunks of less than 128 bytes')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refusal(408, 'DEADLINE_EXCEEDED', 'the request did not arrive in time')
    case 'HPE_INVALID_VERSION':
      return refusal(505, 'UNIMPLEMENTED', 'unsupported HTTP version; use 1.0, 1.1 or 2')
    default:
      return refusal(400, 'INVALID_ARGUMENT', 'not a valid HTTP request')
  }
}

/** Error for a method such as CONNECT, which would make the connection a tunnel. */
export function noTunnel(): AppError {
  return refusal(501, 'UNIMPLEMENTED', 'this server is not a proxy and does not support CONNECT')
}

/** Error for a request without TLS on a port with TLS. */
export function notSecured(): AppError {
  return refusal(400, 'INVALID_ARGUMENT', 'this port requires TLS; use https:// instead of http://')
}

function tooLong(part: string, limit: number): AppError {
  return refusal(414, 'INVALID_ARGUMENT', `the request ${part} is too long; at most ${limit} bytes are allowed`)
}

function refusal(http: number, code: AppError['code'], message: string): AppError {
  return new AppError(code, message, { http })
}
