// Security headers of every response. With them, browsers never run pushed content as a page or a script of our origin.
import http from 'node:http'

/** Default content security policy. Entry points with pages pass their own policy to `writeHead`. */
const safeHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
}

/** Header lines for a response that is written to the connection directly. */
export const safeHeaderLines = Object.entries(safeHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/** Sets the headers on an HTTP/2 response. */
export function setSafeHeaders(res: http.ServerResponse): void {
  for (const name in safeHeaders) res.setHeader(name, safeHeaders[name as keyof typeof safeHeaders])
}

/** Sets the request ID in the headers of the response. */
export function setRequestId(res: http.ServerResponse, requestId: string): void {
  if (res instanceof SafeResponse) res.requestId = requestId
  else res.setHeader('x-request-id', requestId)
}

type GivenHeaders = http.OutgoingHttpHeaders | http.OutgoingHttpHeader[]

/**
 * Creates the HTTP/1.1 response class with these headers. Also covers responses that Node itself sends. Measured to be faster
 * than `setHeader`.
 */
export class SafeResponse<
  Request extends http.IncomingMessage = http.IncomingMessage,
> extends http.ServerResponse<Request> {
  requestId: string | undefined

  override writeHead(status: number, given?: string | GivenHeaders, more?: GivenHeaders): this {
    if (typeof given === 'string' || Array.isArray(given)) {
      setSafeHeaders(this)
      return super.writeHead(status, given as string, more)
    }
    const { requestId } = this
    const id = requestId === undefined ? undefined : { 'x-request-id': requestId }
    return super.writeHead(status, { ...safeHeaders, ...id, ...given })
  }
}
