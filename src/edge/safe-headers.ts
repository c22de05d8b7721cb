// What every answer of the port says, so that nothing that anybody has pushed is ever a page or a script of our origin.
import http from 'node:http'

/** A door that shows pages gives `writeHead` a policy of its own, which wins. */
export const safeHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
}

/** The same as the lines of an answer that is written to the connection by hand. */
export const safeHeaderLines = Object.entries(safeHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/** Sets them on an answer over HTTP/2. */
export function setSafeHeaders(res: http.ServerResponse): void {
  for (const name in safeHeaders) res.setHeader(name, safeHeaders[name as keyof typeof safeHeaders])
}

/** Has every answer say which request it is to. */
export function setRequestId(res: http.ServerResponse, requestId: string): void {
  if (res instanceof SafeResponse) res.requestId = requestId
  else res.setHeader('x-request-id', requestId)
}

type Given = http.OutgoingHttpHeaders | http.OutgoingHttpHeader[]

/** An answer over HTTP/1.1 that has them, also where Node answers by itself. With `setHeader` it would be slower (measured). */
export class SafeResponse<
  Request extends http.IncomingMessage = http.IncomingMessage,
> extends http.ServerResponse<Request> {
  requestId: string | undefined

  override writeHead(status: number, given?: string | Given, more?: Given): this {
    if (typeof given === 'string' || Array.isArray(given)) {
      setSafeHeaders(this)
      return super.writeHead(status, given as string, more)
    }
    const { requestId } = this
    const id = requestId === undefined ? undefined : { 'x-request-id': requestId }
    return super.writeHead(status, { ...safeHeaders, ...id, ...given })
  }
}
