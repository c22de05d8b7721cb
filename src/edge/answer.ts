// HTTP responses of entry points.
import type { HttpArrival } from './entry-points.ts'

export type Headers = Record<string, string | string[]>

/**
 * Sends a response, unless the request already has one. A response to HEAD has no body. Caches must not store the response unless
 * `headers` allow it. `code` is the code for the metrics and the log line.
 */
export function answer(
  arrival: HttpArrival,
  status: number,
  text: string | Buffer | undefined,
  headers: Headers = {},
  code: string = String(status),
): void {
  if (!arrival.settle(code)) return
  const { req, res } = arrival
  if (res.headersSent || res.destroyed) return
  const length = text === undefined ? {} : { 'content-length': Buffer.byteLength(text) }
  res.writeHead(status, { ...length, 'cache-control': 'no-store', ...headers })
  res.end(req.method === 'HEAD' ? undefined : text)
}

/**
 * Closes the connection if the body was not read to its end. Otherwise the rest of the body would be parsed as the next request.
 */
export function afterUnread({ req }: Pick<HttpArrival, 'req'>): Headers {
  return req.complete || req.httpVersionMajor === 2 ? {} : { connection: 'close' }
}
