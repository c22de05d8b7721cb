import type { IncomingMessage } from 'node:http'
import http2, { type ServerHttp2Stream } from 'node:http2'

/** Ends the request if no data is received or sent for this number of milliseconds. Does not limit its total time. */
export function limitIdle(req: IncomingMessage, ms: number): void {
  const cut = (): void => {
    // Over HTTP/2, the request is only a view of its stream, so the stream is closed. Destroying the request would leave the
    // stream open.
    if ('stream' in req) (req.stream as ServerHttp2Stream).close(http2.constants.NGHTTP2_CANCEL)
    else req.destroy()
  }
  req.setTimeout(ms, cut)
}
