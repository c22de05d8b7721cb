import type { IncomingMessage } from 'node:http'
import http2, { type ServerHttp2Stream } from 'node:http2'

/** Ends the request when nothing comes or goes for so many milliseconds; its whole time is not limited. */
export function limitIdle(req: IncomingMessage, ms: number): void {
  const cut = (): void => {
    // Of HTTP/2 the request is only a view; the stream is what a client holds open.
    if ('stream' in req) (req.stream as ServerHttp2Stream).close(http2.constants.NGHTTP2_CANCEL)
    else req.destroy()
  }
  req.setTimeout(ms, cut)
}
